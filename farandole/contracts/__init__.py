"""Contracts between agents: schemas derived from event classes, both wire formats, evolution, and what other teams get."""
