-- name: find_exchange
-- How many reais a dollar is by now; zero rows: nobody has said.
SELECT brl_per_usd, since, actor FROM exchange WHERE since <= (SELECT clock())
ORDER BY since DESC LIMIT 1;

-- name: find_prices
-- What a provider's units cost by now, the oldest word first.
SELECT provider, model, unit, amount, currency, per, since, actor FROM prices
WHERE provider = :provider AND since <= (SELECT clock())
ORDER BY since;

-- name: list_prices
-- Every price that somebody has set, also those to come.
SELECT provider, model, unit, amount, currency, per, since, actor FROM prices
ORDER BY provider, model, unit, since;

-- name: put_exchange
-- Say how many reais a dollar is from an instant on, or say it anew.
INSERT INTO exchange (since, brl_per_usd, actor)
VALUES (coalesce(:since, (SELECT clock())), :brl_per_usd, :actor)
ON CONFLICT (since) DO UPDATE SET brl_per_usd = excluded.brl_per_usd, actor = excluded.actor;

-- name: put_price
-- Say what a unit costs from an instant on, or say it anew.
INSERT INTO prices (provider, model, unit, since, amount, currency, per, actor)
VALUES (:provider, :model, :unit, coalesce(:since, (SELECT clock())), :amount, :currency, :per, :actor)
ON CONFLICT (provider, model, unit, since) DO UPDATE
SET amount = excluded.amount, currency = excluded.currency, per = excluded.per,
    actor = excluded.actor;
