-- health_projector: where the projector is in each partition
SELECT topic, partition, next_offset, gap FROM projector_offset ORDER BY topic, partition
