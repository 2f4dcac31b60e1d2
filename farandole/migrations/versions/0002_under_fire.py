"""Waits, owners of claims, workers, lifelines of partitions."""

from farandole.migrations import run_sql

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    run_sql("0002_under_fire.sql")
