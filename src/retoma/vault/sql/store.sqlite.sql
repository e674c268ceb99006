-- name: hold_secret_key
-- The id of the key that seals here, which nobody else may turn before this is committed.
-- Twin: here whoever writes is alone, there a row is locked.
SELECT value FROM meta WHERE name = 'secret_key';

-- name: seal_anew
-- Secrets sealed with a new key. Touches none that was set meanwhile.
-- Twin: sets arrive by json_each here, by json_to_recordset there.
UPDATE secrets SET ref = m.value ->> 'new', key = :key
FROM json_each(:rows) m
WHERE secrets.owner = m.value ->> 'owner' AND secrets.field = m.value ->> 'field'
  AND secrets.row = m.value ->> 'row' AND secrets.ref = m.value ->> 'old'
RETURNING secrets.row;

-- name: secret_faces
-- What may be shown of the secrets of many rows; nothing for those that have none.
-- Twin: sets arrive by json_each here, by json_array_elements there.
SELECT s.row, s.last4 FROM json_each(:rows) m
JOIN secrets s ON s.owner = :owner AND s.field = :field AND s.row = m.value;
