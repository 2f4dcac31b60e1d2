"""How fast models are called: limits shared by all workers, a brake, and a circuit breaker. docs/limits.md explains it."""
