-- name: lock_secret_key
-- The id of the current key, locked against other transactions until the commit.
-- Twin: here the row is locked; SQLite has a single writer anyway.
SELECT value FROM meta WHERE name = 'secret_key' FOR UPDATE;

-- name: seal_anew
-- Stores secrets encrypted with a new key. Changes no secret that was set in the meantime.
-- Twin: parameter sets arrive by  json_to_recordset here, by json_each there.
UPDATE secrets s SET ref = m.new, key = :key
FROM json_to_recordset(CAST(:rows AS json))
    AS m(owner text, field text, "row" text, old text, new text)
WHERE s.owner = m.owner AND s.field = m.field AND s.row = m."row" AND s.ref = m.old
RETURNING s.row;

-- name: masked_secrets
-- The shown characters of the secrets of many rows; rows without a secret are left out.
-- Twin: parameter sets arrive by  json_array_elements here, by json_each there.
SELECT s.row, s.last4 FROM json_array_elements_text(CAST(:rows AS json)) AS m(value)
JOIN secrets s ON s.owner = :owner AND s.field = :field AND s.row = m.value;
