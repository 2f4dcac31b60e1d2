-- next_due: seconds until something is due, and until something is to be looked at; null: nothing is
SELECT extract(epoch FROM (SELECT min(due) FROM wait WHERE agent = %(agent)s AND woken_at IS NULL) - now())::float8,
       extract(epoch FROM (SELECT min(look_at) FROM wait WHERE agent = %(agent)s AND look_at IS NOT NULL) - now())::float8
