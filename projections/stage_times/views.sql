-- stage_times_lengths: the counts with their lengths, a row for each stage, day, kind and length; may be summed over days.
CREATE OR REPLACE VIEW stage_times_lengths AS
SELECT stage, day, kind, n, CASE kind WHEN 'whole' THEN longest END AS longest,
       least(make_interval(secs => 2.0 ^ ((bucket >> 3) - 1023) * (1 + ((bucket & 7) + 0.5) / 8)),  -- a bucket's middle
             CASE kind WHEN 'whole' THEN longest END) AS length
FROM stage_times_counts, LATERAL (VALUES ('whole', whole), ('waiting', waiting), ('working', working)) AS kinds (kind, n)
WHERE n > 0;

-- stage_durations: how long it took to reach each stage, a row a day: waiting for its agent, working, and both (p50, p95).
-- Read off counts by length, so at most 6.3 % off; `longest` is exact. Waiting is known where the agent made a claim.
CREATE OR REPLACE VIEW stage_durations AS
WITH counted AS (
  SELECT *, sum(n) OVER (PARTITION BY stage, day, kind ORDER BY length) AS upto,
         sum(n) OVER (PARTITION BY stage, day, kind) AS total
  FROM stage_times_lengths
)
SELECT day, stage, coalesce(sum(n) FILTER (WHERE kind = 'whole'), 0) AS events,
       date_trunc('milliseconds', min(length) FILTER (WHERE kind = 'waiting' AND upto >= 0.50 * total)) AS waiting_p50,
       date_trunc('milliseconds', min(length) FILTER (WHERE kind = 'waiting' AND upto >= 0.95 * total)) AS waiting_p95,
       date_trunc('milliseconds', min(length) FILTER (WHERE kind = 'working' AND upto >= 0.50 * total)) AS working_p50,
       date_trunc('milliseconds', min(length) FILTER (WHERE kind = 'working' AND upto >= 0.95 * total)) AS working_p95,
       date_trunc('milliseconds', min(length) FILTER (WHERE kind = 'whole' AND upto >= 0.50 * total)) AS p50,
       date_trunc('milliseconds', min(length) FILTER (WHERE kind = 'whole' AND upto >= 0.95 * total)) AS p95,
       date_trunc('milliseconds', max(longest)) AS longest
FROM counted
GROUP BY day, stage
ORDER BY day DESC, stage;

-- stage_durations_week: the same over the last seven days together, today included; counts add up where percentiles do not.
CREATE OR REPLACE VIEW stage_durations_week AS
WITH together AS (
  SELECT stage, kind, length, sum(n) AS n, max(longest) AS longest
  FROM stage_times_lengths
  WHERE day > (now() AT TIME ZONE 'UTC')::date - 7
  GROUP BY stage, kind, length
), counted AS (
  SELECT *, sum(n) OVER (PARTITION BY stage, kind ORDER BY length) AS upto, sum(n) OVER (PARTITION BY stage, kind) AS total
  FROM together
)
SELECT stage, coalesce(sum(n) FILTER (WHERE kind = 'whole'), 0) AS events,
       date_trunc('milliseconds', min(length) FILTER (WHERE kind = 'waiting' AND upto >= 0.50 * total)) AS waiting_p50,
       date_trunc('milliseconds', min(length) FILTER (WHERE kind = 'waiting' AND upto >= 0.95 * total)) AS waiting_p95,
       date_trunc('milliseconds', min(length) FILTER (WHERE kind = 'working' AND upto >= 0.50 * total)) AS working_p50,
       date_trunc('milliseconds', min(length) FILTER (WHERE kind = 'working' AND upto >= 0.95 * total)) AS working_p95,
       date_trunc('milliseconds', min(length) FILTER (WHERE kind = 'whole' AND upto >= 0.50 * total)) AS p50,
       date_trunc('milliseconds', min(length) FILTER (WHERE kind = 'whole' AND upto >= 0.95 * total)) AS p95,
       date_trunc('milliseconds', max(longest)) AS longest
FROM counted
GROUP BY stage
ORDER BY stage;
