-- beat_end: a worker has left in good order; a successor's row stays
DELETE FROM worker
WHERE agent = %(agent)s AND slot = %(slot)s AND host = %(host)s AND pid = %(pid)s AND started_at = %(started_at)s
