-- name: add_charges
-- Write down what was spent and saved; of claims whose save or settling was accepted just before.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here.
INSERT INTO charges (at, job, batch, kind, application, provider, model, unit, sort, amount)
SELECT (SELECT clock()), o.value ->> 'job', o.value ->> 'batch', o.value ->> 'kind',
       o.value ->> 'application', o.value ->> 'provider', o.value ->> 'model', o.value ->> 'unit',
       o.value ->> 'sort', o.value ->> 'amount'
FROM json_each(:rows) o;

-- name: add_costs
-- Add charges to what they add up to. An account that is full stays full: nothing stops for it.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here.
INSERT INTO costs AS c (scope, name, period, provider, model, unit, sort, amount)
SELECT o.value ->> 0, o.value ->> 1, o.value ->> 2, o.value ->> 3, o.value ->> 4, o.value ->> 5,
       o.value ->> 6, o.value ->> 7
FROM json_each(:rows) o
WHERE true
ON CONFLICT (scope, name, period, provider, model, unit, sort) DO UPDATE
SET amount = CASE WHEN c.amount > 9000000000000000000 - excluded.amount
                  THEN 9000000000000000000 ELSE c.amount + excluded.amount END;
