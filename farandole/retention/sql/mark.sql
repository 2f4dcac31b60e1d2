-- mark: up to where, and before which time, records may be of jobs that were forgotten
WITH reached AS (
  INSERT INTO forgotten_offset AS mark (topic, partition, topic_id, next_offset)
  SELECT topic, partition, coalesce(topic_id, ''), next_offset FROM projector_offset WHERE next_offset IS NOT NULL
  ORDER BY topic, partition
  ON CONFLICT (topic, partition, topic_id) DO UPDATE SET next_offset = excluded.next_offset
  WHERE mark.next_offset < excluded.next_offset
)
UPDATE retention
SET horizon = greatest(horizon, %(cutoff)s), jobs = jobs + %(jobs)s, events = events + %(events)s
