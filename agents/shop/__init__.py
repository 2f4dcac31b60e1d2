"""The shop's own database, as the agents see it: who is a customer, and what they ordered."""
