-- shown: events of the sample as a person reads them
SELECT event_id, trace_id, type, stage, run, hop, to_char(occurred_at, 'YYYY-MM-DD HH24:MI:SS'), body::text
FROM farandole_sample
WHERE event_id = ANY (%(ids)s::uuid[])
ORDER BY event_id
