-- costs: what model calls cost, by up to two of day, agent, model, tenant and job, and first of all together; days are UTC
SELECT {columns}, count(*) AS calls, count(*) FILTER (WHERE outcome <> 'answered') AS failed,
       count(*) FILTER (WHERE micro_dollars IS NULL) AS unpriced,
       coalesce(sum(input_tokens), 0)::bigint AS input_tokens, coalesce(sum(output_tokens), 0)::bigint AS output_tokens,
       coalesce(sum(cache_read_tokens), 0)::bigint AS cache_read_tokens,
       coalesce(sum(cache_write_tokens), 0)::bigint AS cache_write_tokens,
       coalesce(sum(micro_dollars), 0)::bigint AS micro_dollars
FROM usage
WHERE at >= %(since)s AND at < %(until)s
GROUP BY GROUPING SETS (({columns}), ())
ORDER BY grouping({columns}) DESC, {order}
LIMIT %(limit)s
