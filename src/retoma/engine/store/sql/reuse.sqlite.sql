-- name: offer_reuse
-- Offer steps that were saved just before for others to use again, in place of older ones.
-- Twin: sets of rows arrive by json_to_recordset there, by json_each here.
INSERT INTO reuse (hash, kind, step, version, key, key_hash, value, cost, job, at)
SELECT o.value ->> 'hash', o.value ->> 'kind', o.value ->> 'step', o.value ->> 'version',
       o.value ->> 'key', o.value ->> 'key_hash', o.value -> 'value', o.value -> 'cost',
       o.value ->> 'job', (SELECT clock())
FROM json_each(:rows) o
WHERE true
ON CONFLICT (hash) DO UPDATE SET value = excluded.value, cost = excluded.cost,
    job = excluded.job, at = excluded.at;
