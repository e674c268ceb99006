-- Secrets sealed with a new key. Touches none that was set meanwhile.
-- Twin: sets arrive by json_each here, by json_to_recordset there.
UPDATE secrets SET ref = m.value ->> 'new', key = :key
FROM json_each(:rows) m
WHERE secrets.owner = m.value ->> 'owner' AND secrets.field = m.value ->> 'field'
  AND secrets.row = m.value ->> 'row' AND secrets.ref = m.value ->> 'old'
RETURNING secrets.row;
