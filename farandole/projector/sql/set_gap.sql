-- set_gap: stop a partition, with the reason, until a person decides
UPDATE projector_offset SET gap = %(gap)s, updated_at = now()
WHERE topic = %(topic)s AND partition = %(partition)s AND epoch = %(epoch)s AND owner = %(owner)s
