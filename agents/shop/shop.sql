-- shop: the customers and orders that `enrich` looks senders up in; stands for the database that a real shop has already
CREATE SCHEMA IF NOT EXISTS shop;

CREATE TABLE IF NOT EXISTS shop.customer (
    address text PRIMARY KEY CHECK (address = lower(address)),  -- of e-mail
    name    text NOT NULL,
    since   date NOT NULL
);

CREATE TABLE IF NOT EXISTS shop.customer_order (
    number       text PRIMARY KEY,
    address      text NOT NULL REFERENCES shop.customer,
    status       text NOT NULL,
    placed_on    date NOT NULL,
    amount_cents bigint NOT NULL,
    currency     text NOT NULL
);

CREATE INDEX IF NOT EXISTS customer_order_address ON shop.customer_order (address, placed_on DESC);
