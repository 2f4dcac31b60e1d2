"""What a person decides about parked records."""

from farandole.migrations import run_sql

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    run_sql("0006_parking.sql")
