"""Values to Avro's bytes and back, strictly."""
