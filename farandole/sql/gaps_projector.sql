-- gaps_projector: the partitions at which the projector stands still, where it is, and why
SELECT topic, partition, next_offset, gap FROM projector_offset WHERE gap IS NOT NULL ORDER BY topic, partition
