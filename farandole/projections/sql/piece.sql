-- piece: the next events of a build, in the order of their ids
WITH piece AS (
  SELECT event_id
  FROM event_log
  WHERE event_id > %(reached)s AND event_id <= %(upto)s
  ORDER BY event_id
  LIMIT %(size)s
)
SELECT count(*), (SELECT event_id FROM piece ORDER BY event_id DESC LIMIT 1) FROM piece
