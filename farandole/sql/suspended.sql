-- suspended: the projections that stand still, and why
SELECT name, error FROM projection WHERE error IS NOT NULL ORDER BY name
