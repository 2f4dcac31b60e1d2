"""Steps: named, durable results inside a handler. A finished one is replayed, never run again."""
