-- Every price that somebody has set, also those to come.
SELECT provider, model, unit, amount, currency, per, since, actor FROM prices
ORDER BY provider, model, unit, since;
