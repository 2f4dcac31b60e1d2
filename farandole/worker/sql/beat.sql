-- beat: how a worker is now; the slot's last holder is overwritten
INSERT INTO worker (agent, slot, host, pid, started_at, beat_at, vitals)
VALUES (%(agent)s, %(slot)s, %(host)s, %(pid)s, %(started_at)s, now(), %(vitals)s)
ON CONFLICT (agent, slot) DO UPDATE
SET host = excluded.host, pid = excluded.pid, started_at = excluded.started_at, beat_at = excluded.beat_at,
    vitals = excluded.vitals
