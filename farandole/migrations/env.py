"""Alembic's entry: runs the versions on the connection that `farandole.migrate` hands over."""

from alembic import context

given = context.config.attributes
context.configure(connection=given["connection"], version_table_schema=given["schema"], transaction_per_migration=True)
with context.begin_transaction():
    context.run_migrations()
