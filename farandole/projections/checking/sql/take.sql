-- take: events of the sample, in the order given; those that event_log did not have are the new ones, in that order too
WITH taken AS (
  SELECT sample.*
  FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY AS wanted (event_id, place)
  JOIN farandole_sample AS sample USING (event_id)
  ORDER BY place
), inserted AS (
  INSERT INTO event_log SELECT * FROM taken
  ON CONFLICT DO NOTHING
  RETURNING *
)
INSERT INTO new_events SELECT * FROM inserted
