-- fill: jobs of five events, as a projector would have written them: ids with the time in front, one millisecond a job
INSERT INTO event_log (event_id, trace_id, causation_id, type, stage, outcome, emitted_by, run, hop, attempt, occurred_at,
                       topic, partition, "offset", logged_at, value, body, sanitised, content_hash)
SELECT (prefix || '8' || substr(md5(job || '/' || hop), 1, 3) || '8' || substr(md5(job || '/' || hop), 4, 15))::uuid,
       (prefix || '7' || substr(md5(job::text), 1, 3) || '8' || substr(md5(job::text), 4, 15))::uuid,
       CASE WHEN hop > 0 THEN (prefix || '8' || substr(md5(job || '/' || hop - 1), 1, 3)
                                      || '8' || substr(md5(job || '/' || hop - 1), 4, 15))::uuid END,
       'jobs.' || initcap(stage), stage, CASE stage WHEN 'done' THEN 'done' END, 'agent-' || stage || ' 1',
       0, hop, 1, at + hop * interval '1 s', 'fill.' || stage, job %% 4, job, at + hop * interval '1 s',
       decode(repeat('c3', %(bytes)s), 'hex'),
       jsonb_build_object('subject', 'hello world', 'text', text, 'category', 'billing', 'confidence', 93),
       false, hashint8extended(job, hop)
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS job
CROSS JOIN LATERAL (SELECT to_timestamp((%(start)s::bigint + job) / 1000.0) AS at,
                           lpad(to_hex(%(start)s::bigint + job), 12, '0') AS prefix,
                           (SELECT string_agg(md5(job || '.' || piece), ' ')
                            FROM generate_series(1, greatest(1, %(bytes)s / 33 - 4)) AS piece) AS text) AS of_job
CROSS JOIN unnest('{submitted,classified,enriched,acted,done}'::text[]) WITH ORDINALITY AS step (stage, number)
CROSS JOIN LATERAL (SELECT (number - 1)::int AS hop) AS numbered
