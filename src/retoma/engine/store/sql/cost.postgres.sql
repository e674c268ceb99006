-- name: add_charges
-- Write down what was spent and saved; of claims whose save or settling was accepted just before.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
INSERT INTO charges (at, job, batch, kind, application, provider, model, unit, sort, amount)
SELECT (SELECT clock()), job, batch, kind, application, provider, model, unit, sort, amount
FROM json_to_recordset(CAST(:rows AS json)) AS t(job bigint, batch bigint, kind text,
    application text, provider text, model text, unit text, sort text, amount bigint);

-- name: add_costs
-- Add charges to what they add up to. An account that is full stays full: nothing stops for it.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
INSERT INTO costs AS c (scope, name, period, provider, model, unit, sort, amount)
SELECT r ->> 0, r ->> 1, r ->> 2, r ->> 3, r ->> 4, r ->> 5, r ->> 6, CAST(r ->> 7 AS bigint)
FROM json_array_elements(CAST(:rows AS json)) AS t(r)
ORDER BY 1, 2, 3, 4, 5, 6, 7
ON CONFLICT (scope, name, period, provider, model, unit, sort) DO UPDATE
SET amount = CASE WHEN c.amount > 9000000000000000000 - excluded.amount
                  THEN 9000000000000000000 ELSE c.amount + excluded.amount END;
