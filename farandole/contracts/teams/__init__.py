"""What other teams get: classes from schemas, and the flow as a document."""
