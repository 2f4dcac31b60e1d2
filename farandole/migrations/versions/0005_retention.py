"""The event log in partitions by time, and how long it is kept."""

from farandole.migrations import run_sql

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    run_sql("0005_retention.sql")
