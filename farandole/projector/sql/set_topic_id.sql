-- set_topic_id: remember which topic of this name the offset belongs to
UPDATE projector_offset SET topic_id = %(topic_id)s
WHERE topic = %(topic)s AND partition = %(partition)s AND topic_id IS NULL
