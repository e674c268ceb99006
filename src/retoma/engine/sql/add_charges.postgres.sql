-- Write down what was spent and saved; of claims whose save or settling was accepted just before.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
INSERT INTO charges (at, job, batch, kind, application, provider, model, unit, sort, amount)
SELECT (SELECT clock()), job, batch, kind, application, provider, model, unit, sort, amount
FROM json_to_recordset(CAST(:rows AS json)) AS t(job bigint, batch bigint, kind text,
    application text, provider text, model text, unit text, sort text, amount bigint);
