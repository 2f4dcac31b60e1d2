"""Effects with their results, usage of models, budgets, shared limits."""

from farandole.migrations import run_sql

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run_sql("0003_effects.sql")
