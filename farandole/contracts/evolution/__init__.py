"""Schemas of several versions: who would break, and what was released."""
