-- clear_alone: the record that was handled alone is committed
UPDATE lifeline SET alone = false, suspect = NULL, kills = 0
WHERE agent = %(agent)s AND topic = %(topic)s AND partition = %(partition)s AND owner = %(owner)s AND suspect = %(offset)s
