-- delete_known: what was in the log before, or comes twice in this batch, is not folded again
DELETE FROM incoming
WHERE NOT EXISTS (SELECT FROM fresh
                  WHERE (fresh.event_id, fresh.topic, fresh.partition, fresh."offset")
                      = (incoming.event_id, incoming.topic, incoming.partition, incoming."offset"))
