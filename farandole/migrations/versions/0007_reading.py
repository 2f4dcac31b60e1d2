"""What readers of jobs need."""

from farandole.migrations import run_sql

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    run_sql("0007_reading.sql")
