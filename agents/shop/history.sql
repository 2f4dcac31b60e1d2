-- history: a customer with the newest orders, as one row; none when the address is no customer's
SELECT customer.name,
       customer.since AS customer_since,
       coalesce((
           SELECT jsonb_agg(to_jsonb(newest) - 'address' ORDER BY newest.placed_on DESC, newest.number DESC)
           FROM (
               SELECT * FROM shop.customer_order AS placed
               WHERE placed.address = customer.address
               ORDER BY placed_on DESC, number DESC
               LIMIT 10
           ) AS newest
       ), '[]') AS orders
FROM shop.customer AS customer
WHERE customer.address = %s
