-- Say how many reais a dollar is from an instant on, or say it anew.
INSERT INTO exchange (since, brl_per_usd, actor)
VALUES (coalesce(:since, (SELECT clock())), :brl_per_usd, :actor)
ON CONFLICT (since) DO UPDATE SET brl_per_usd = excluded.brl_per_usd, actor = excluded.actor;
