-- name: hold_secret_key
-- The id of the key that seals here, which nobody else may turn before this is committed.
-- Twin: here a row is locked, there whoever writes is alone.
SELECT value FROM meta WHERE name = 'secret_key' FOR UPDATE;

-- name: seal_anew
-- Secrets sealed with a new key. Touches none that was set meanwhile.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
UPDATE secrets s SET ref = m.new, key = :key
FROM json_to_recordset(CAST(:rows AS json))
    AS m(owner text, field text, "row" text, old text, new text)
WHERE s.owner = m.owner AND s.field = m.field AND s.row = m."row" AND s.ref = m.old
RETURNING s.row;

-- name: secret_faces
-- What may be shown of the secrets of many rows; nothing for those that have none.
-- Twin: sets arrive by json_array_elements here, by json_each there.
SELECT s.row, s.last4 FROM json_array_elements_text(CAST(:rows AS json)) AS m(value)
JOIN secrets s ON s.owner = :owner AND s.field = :field AND s.row = m.value;
