"""Projections: registered by hash, with their SQL, and built beside the live ones."""

from farandole.migrations import run_sql

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    run_sql("0004_projections.sql")
