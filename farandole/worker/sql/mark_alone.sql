-- mark_alone: this record is all that its process handles from now on; returns how many owners have died over it
UPDATE lifeline SET
  alone = true, suspect = %(offset)s, kills = CASE WHEN suspect = %(offset)s THEN kills ELSE 0 END
WHERE agent = %(agent)s AND topic = %(topic)s AND partition = %(partition)s AND owner = %(owner)s
RETURNING kills
