-- Say what a unit costs from an instant on, or say it anew.
INSERT INTO prices (provider, model, unit, since, amount, currency, per, actor)
VALUES (:provider, :model, :unit, coalesce(:since, (SELECT clock())), :amount, :currency, :per, :actor)
ON CONFLICT (provider, model, unit, since) DO UPDATE
SET amount = excluded.amount, currency = excluded.currency, per = excluded.per,
    actor = excluded.actor;
