-- claimed_elsewhere: of events whose claim is another's, those that it holds for another record: duplicates
SELECT step.event_id, step.run, step.name
FROM step
JOIN unnest(%(event_ids)s::uuid[], %(runs)s::int[], %(names)s::text[], %(topics)s::text[], %(partitions)s::int[],
            %(offsets)s::bigint[]) AS given (event_id, run, name, topic, partition, "offset")
  USING (event_id, run, name)
WHERE step.agent = %(agent)s
  AND (step.topic, step.partition, step."offset") <> (given.topic, given.partition, given."offset")
