-- orphans: events that stand behind nobody any more; those that still do are looked at again in a minute
UPDATE wait SET due     = CASE WHEN lone THEN now() END,
                look_at = CASE WHEN NOT lone THEN now() + interval '1 minute' END
FROM (
  SELECT event_id, run, NOT EXISTS (
           SELECT FROM wait AS earlier
           WHERE earlier.agent = this.agent AND earlier.lane = this.lane
             AND (earlier.partition, earlier."offset") < (this.partition, this."offset")) AS lone
  FROM wait AS this
  WHERE agent = %(agent)s AND look_at <= now() AND woken_at IS NULL AND due IS NULL
  ORDER BY look_at
  LIMIT %(rows)s
) AS looked
WHERE wait.agent = %(agent)s AND wait.event_id = looked.event_id AND wait.run = looked.run AND wait.due IS NULL
