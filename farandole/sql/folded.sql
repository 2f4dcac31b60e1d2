-- folded: how far the projector is in a topic's partitions
SELECT partition, next_offset FROM projector_offset WHERE topic = %(topic)s AND next_offset IS NOT NULL
