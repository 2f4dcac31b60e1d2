"""LLM agents as an event-sourced choreography on Kafka, with a queryable job state in Postgres."""
