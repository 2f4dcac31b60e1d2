-- dead_attended: agents of which a worker has shown itself of late (`alive`, in seconds, by the database's clock)
SELECT DISTINCT agent
FROM worker
WHERE beat_at > now() - %(alive)s * interval '1 second' AND vitals ->> 'state' IS DISTINCT FROM 'stopped'
