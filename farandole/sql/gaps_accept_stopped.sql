-- gaps_accept_stopped: workers that stopped at what has been decided now are no news any more
DELETE FROM worker WHERE agent = %(agent)s AND vitals ->> 'state' = 'stopped'
