-- seed: customers and orders that fit examples/inbox.jsonl, given as one JSON document; what is there already stays
WITH given AS (
    SELECT * FROM jsonb_to_recordset(%(customers)s) AS c (address text, name text, since date, orders jsonb)
), customers AS (
    INSERT INTO shop.customer (address, name, since) SELECT address, name, since FROM given
    ON CONFLICT DO NOTHING
)
INSERT INTO shop.customer_order (number, address, status, placed_on, amount_cents, currency)
SELECT placed.number, given.address, placed.status, placed.placed_on, placed.amount_cents, placed.currency
FROM given
CROSS JOIN jsonb_to_recordset(given.orders)
    AS placed (number text, status text, placed_on date, amount_cents bigint, currency text)
ON CONFLICT DO NOTHING
