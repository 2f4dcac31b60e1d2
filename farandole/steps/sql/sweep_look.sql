-- sweep_look: the time, and whether an agent has steps whose leases ended before the time given; nothing is locked
SELECT clock_timestamp(),
       EXISTS (SELECT FROM step WHERE agent = %(agent)s AND run = 0 AND state = 'leased' AND lease_until < %(ended)s)
