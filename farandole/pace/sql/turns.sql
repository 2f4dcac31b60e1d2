-- turns: note how calls ended, and give slots to those that wait, in their order; under the lock of the model's one row.
-- Times are seconds of the database's clock. docs/limits.md has the arithmetic
WITH RECURSIVE found AS MATERIALIZED (
  SELECT *, extract(epoch FROM requests_at)::float8 AS requests, extract(epoch FROM input_at)::float8 AS input,
         extract(epoch FROM output_at)::float8 AS output, extract(epoch FROM closed_until)::float8 AS closed,
         extract(epoch FROM probe_until)::float8 AS probing, extract(epoch FROM reopened_at)::float8 AS reopened,
         extract(epoch FROM next_at)::float8 AS next, extract(epoch FROM updated_at)::float8 AS updated
  FROM model_pace
  WHERE key = %(key)s AND model = %(model)s
  FOR UPDATE
), given AS MATERIALIZED (
  SELECT found.*, clock.now, %(owner)s::text AS owner, %(inputs)s::float8[] AS inputs, %(outputs)s::float8[] AS outputs,
         60 / 0.99::float8 AS minute,      -- aims at 99 %% of the limit; the rest is for calls that come a little late
         coalesce(%(requests_told)s::float8, requests_told) AS requests_now, coalesce(%(input_told)s::float8, input_told) AS input_now,
         coalesce(%(output_told)s::float8, output_told) AS output_now,
         %(failed)s::int AS failed, %(succeeded)s::boolean AS succeeded, %(overloaded)s::boolean AS overloaded,
         %(close)s::float8 AS close, %(why)s::text AS why,
         coalesce(found.probe_owner = %(probe)s::text, false) AS ours, %(probe_won)s::boolean AS won,
         0.5 ^ least(greatest(now - updated, 0) / 60, 100) AS faded
  FROM found,
       LATERAL (SELECT extract(epoch FROM clock_timestamp())::float8 + %(offset)s + 0 * found.level AS now) AS clock
), limited AS (                           -- by the smaller of ours and the API's, where there is one of ours
  SELECT given.*, now + %(horizon)s + minute AS latest,
         coalesce(least(%(requests_limit)s::float8, requests_now + 0 * %(requests_limit)s::float8), 'infinity') AS requests_limit,
         coalesce(least(%(input_limit)s::float8, input_now + 0 * %(input_limit)s::float8), 'infinity') AS input_limit,
         coalesce(least(%(output_limit)s::float8, output_now + 0 * %(output_limit)s::float8), 'infinity') AS output_limit
  FROM given
), counted AS (
  SELECT limited.*, CASE WHEN succeeded THEN failed ELSE failures + failed END AS in_a_row,
         greatest(1, input_largest * faded) AS input_most, greatest(1, output_largest * faded) AS output_most
  FROM limited
), braked AS (
  SELECT counted.*,
         CASE WHEN ours AND won THEN 0
              WHEN ours AND NOT won THEN level + 1
              WHEN level = 0 AND (overloaded OR in_a_row >= %(failures_limit)s) THEN 1
              ELSE level END AS braking
  FROM counted
), gate AS MATERIALIZED (
  SELECT braked.*,
         greatest(closed, now + close,
                  CASE WHEN braking > level THEN now + least(60, 2 ^ least(braking - 1, 6)) * (0.8 + 0.4 * random()) END) AS shut,
         CASE WHEN ours AND won THEN now WHEN close IS NOT NULL THEN greatest(closed, now + close) ELSE reopened END AS opens,
         CASE WHEN ours THEN 0 ELSE probing END AS probed,
         -- a minute after the last call nothing is owed any more: also when the clock was set back
         least(latest, requests) AS requests_due, least(latest, next) AS next_due,
         least(latest, input + %(input_owed)s * minute / greatest(input_limit - input_most, 1)) AS input_due,
         least(latest, output + %(output_owed)s * minute / greatest(output_limit - output_most, 1)) AS output_due,
         least(4, greatest(0.01, coalesce(input_share + (%(input_seen)s::float8 - input_share) * %(weight)s, input_share)))
           AS input_part,
         least(1, greatest(0.01, coalesce(output_share + (%(output_seen)s::float8 - output_share) * %(weight)s, output_share)))
           AS output_part
  FROM braked
), mode AS MATERIALIZED (
  SELECT gate.*, shut <= now AND braking = 0 AS may,
         shut <= now AND braking > 0 AND probed < now AND cardinality(inputs) > 0 AS probe
  FROM gate
), slot (n, at, input_taken, output_taken, requests, input, output, input_most, output_most, next) AS (
  SELECT 0, NULL::float8, NULL::float8, NULL::float8, requests_due, input_due, output_due, input_most, output_most, next_due
  FROM mode
  UNION ALL
  SELECT slot.n + 1, due.at, asked.input, asked.output,
         due.at + minute / requests_limit,
         due.at + least(minute, asked.input * minute / greatest(input_limit - grown.input, 1)),
         due.at + least(minute, asked.output * minute / greatest(output_limit - grown.output, 1)),
         grown.input, grown.output,
         CASE WHEN due.at < opens + %(reopening)s THEN due.at + 2 ^ least(opens - due.at, 0) ELSE slot.next END
  FROM slot, mode,
       LATERAL (SELECT least(input_limit, inputs[slot.n + 1] * input_part) AS input,
                       least(output_limit, outputs[slot.n + 1] * output_part) AS output) AS asked,
       LATERAL (SELECT greatest(slot.input_most, asked.input) AS input, greatest(slot.output_most, asked.output) AS output) AS grown,
       LATERAL (SELECT greatest(  -- what is larger than all of late keeps away from what went before, too
                  now + %(lead)s, slot.requests, slot.next,
                  slot.input + least(minute, (grown.input - slot.input_most) * minute / greatest(input_limit - slot.input_most, 1)),
                  slot.output + least(minute, (grown.output - slot.output_most) * minute / greatest(output_limit - slot.output_most, 1))
                ) AS at) AS due
  WHERE may AND slot.n < cardinality(inputs) AND due.at <= now + %(horizon)s
), last AS (
  SELECT * FROM slot ORDER BY n DESC LIMIT 1
), noted AS (
  UPDATE model_pace SET
    requests_at = to_timestamp(last.requests), input_at = to_timestamp(last.input), output_at = to_timestamp(last.output),
    input_largest = last.input_most, output_largest = last.output_most, input_share = input_part, output_share = output_part,
    closed_until = to_timestamp(shut), failures = CASE WHEN ours AND won THEN 0 ELSE in_a_row END, level = braking,
    reason = CASE WHEN close IS NOT NULL OR braking > mode.level THEN why WHEN braking > 0 OR shut > now THEN mode.reason END,
    probe_owner = CASE WHEN probe THEN owner WHEN NOT ours THEN mode.probe_owner END,
    probe_until = to_timestamp(CASE WHEN probe OR NOT ours AND mode.probe_owner = %(probing)s::text THEN now + %(probe_seconds)s
                                    ELSE probed END),
    requests_told = requests_now, input_told = input_now, output_told = output_now,
    reopened_at = to_timestamp(opens), next_at = to_timestamp(last.next), updated_at = to_timestamp(now)
  FROM mode, last
  WHERE model_pace.key = mode.key AND model_pace.model = mode.model
  RETURNING model_pace.reason
)
SELECT now, shut, braking, noted.reason, opens, probe, slot.at, slot.input_taken, slot.output_taken
FROM mode, noted, slot
ORDER BY slot.n
