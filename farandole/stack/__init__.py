"""The local stack: a real Kafka and a real Postgres as daemons of one checkout, from wheels and jars alone.

`Stack` is in farandole.stack.stack, what it reports in farandole.stack.status; importing this package imports neither.
"""
