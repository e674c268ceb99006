-- Who plays, by the key and the name of our own.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO times (league, key, name)
SELECT CAST(:league AS text), t.key, t.name
FROM json_to_recordset(CAST(:rows AS json)) AS t(key text, name text)
ORDER BY t.key
ON CONFLICT (league, key) DO NOTHING;
