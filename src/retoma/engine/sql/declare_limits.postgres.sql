-- Say what limits there are and how many each lets run. What is there already is locked only to change it.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
INSERT INTO limits (key, cap)
SELECT key, cap FROM json_to_recordset(CAST(:rows AS json)) AS t(key text, cap integer)
ORDER BY key
ON CONFLICT (key) DO NOTHING;

UPDATE limits l SET cap = t.cap
FROM json_to_recordset(CAST(:rows AS json)) AS t(key text, cap integer)
WHERE l.key = t.key AND l.cap <> t.cap;
