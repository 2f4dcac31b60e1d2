"""The offline rules: what the agents know while no model is connected. Readable, and total: any text gets an answer."""
