"""Event log, projector positions, parked records, conflicts, projections, steps."""

from farandole.migrations import run_sql

revision = "0001"
down_revision = None


def upgrade() -> None:
    run_sql("0001_first.sql")
