-- insert_new: the rows not seen before, in key order (two projectors with the same duplicates wait, never in a circle)
WITH inserted AS (
  INSERT INTO event_log
  SELECT * FROM incoming ORDER BY event_id, topic, partition, "offset"
  ON CONFLICT DO NOTHING
  RETURNING event_id, topic, partition, "offset"
)
INSERT INTO fresh SELECT * FROM inserted
