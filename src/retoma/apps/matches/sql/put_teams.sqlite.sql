-- Who plays, by the key and the name of our own.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO times (league, key, name)
SELECT CAST(:league AS text), value ->> 'key', value ->> 'name' FROM json_each(:rows) WHERE true
ON CONFLICT (league, key) DO NOTHING;
