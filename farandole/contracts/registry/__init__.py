"""The Schema Registry: ids of schemas, schemas of ids."""
