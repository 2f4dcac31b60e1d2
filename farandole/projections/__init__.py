"""Projections: folders of SQL that fold the event log into tables."""

from farandole.projections.folders import CORE, Projection, discover, packaged, read
from farandole.projections.installing import install, refold

__all__ = ["CORE", "Projection", "discover", "install", "packaged", "read", "refold"]
