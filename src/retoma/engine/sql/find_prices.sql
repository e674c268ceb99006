-- What a provider's units cost by now, the oldest word first.
SELECT provider, model, unit, amount, currency, per, since, actor FROM prices
WHERE provider = :provider AND since <= (SELECT clock())
ORDER BY since;
