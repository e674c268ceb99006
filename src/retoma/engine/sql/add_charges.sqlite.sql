-- Write down what was spent and saved; of claims whose save or settling was accepted just before.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here.
INSERT INTO charges (at, job, batch, kind, application, provider, model, unit, sort, amount)
SELECT (SELECT clock()), o.value ->> 'job', o.value ->> 'batch', o.value ->> 'kind',
       o.value ->> 'application', o.value ->> 'provider', o.value ->> 'model', o.value ->> 'unit',
       o.value ->> 'sort', o.value ->> 'amount'
FROM json_each(:rows) o;
