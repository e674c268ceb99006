-- name: offer_reuse
-- Offer steps that were saved just before for others to use again, in place of older ones.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
INSERT INTO reuse (hash, kind, step, version, key, key_hash, value, cost, job, at)
SELECT hash, kind, step, version, key, key_hash, value, cost, job, (SELECT clock())
FROM json_to_recordset(CAST(:rows AS json)) AS t(hash text, kind text, step text,
    version integer, key text, key_hash text, value json, cost json, job bigint)
ORDER BY hash
ON CONFLICT (hash) DO UPDATE SET value = excluded.value, cost = excluded.cost,
    job = excluded.job, at = excluded.at;
