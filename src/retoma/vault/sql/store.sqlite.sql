-- name: lock_secret_key
-- The id of the current key, locked against other transactions until the commit.
-- Twin: SQLite has a single writer; there the row is locked.
SELECT value FROM meta WHERE name = 'secret_key';

-- name: seal_anew
-- Stores secrets encrypted with a new key. Changes no secret that was set in the meantime.
-- Twin: parameter sets arrive by  json_each here, by json_to_recordset there.
UPDATE secrets SET ref = m.value ->> 'new', key = :key
FROM json_each(:rows) m
WHERE secrets.owner = m.value ->> 'owner' AND secrets.field = m.value ->> 'field'
  AND secrets.row = m.value ->> 'row' AND secrets.ref = m.value ->> 'old'
RETURNING secrets.row;

-- name: masked_secrets
-- The shown characters of the secrets of many rows; rows without a secret are left out.
-- Twin: parameter sets arrive by  json_each here, by json_array_elements there.
SELECT s.row, s.last4 FROM json_each(:rows) m
JOIN secrets s ON s.owner = :owner AND s.field = :field AND s.row = m.value;
