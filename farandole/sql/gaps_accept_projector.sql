-- gaps_accept_projector: a person has decided where the projector goes on; it looks again by itself
UPDATE projector_offset
SET gap = NULL, topic_id = NULL, next_offset = %(offset)s, updated_at = now()
WHERE topic = %(topic)s AND partition = %(partition)s AND gap IS NOT NULL
