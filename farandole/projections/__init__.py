"""Projections: folders of SQL that fold the event log into tables."""

from farandole.projections.folders import CORE, Projection, discover, packaged, read
from farandole.projections.installing import drop, install, refold
from farandole.projections.registered import register

__all__ = ["CORE", "Projection", "discover", "drop", "install", "packaged", "read", "refold", "register"]
