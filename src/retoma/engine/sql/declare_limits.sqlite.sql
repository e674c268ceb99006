-- Say what limits there are and how many each lets run. What is there already is locked only to change it.
-- Twin: sets of rows arrive by json_to_recordset there. Here what was sent stands in a temp table, or
-- all limits would be read to find them.
CREATE TEMP TABLE IF NOT EXISTS declared (key text PRIMARY KEY, cap integer);

DELETE FROM temp.declared;

INSERT INTO temp.declared SELECT value ->> 'key', value ->> 'cap' FROM json_each(:rows);

INSERT INTO limits (key, cap) SELECT key, cap FROM temp.declared WHERE true
ON CONFLICT (key) DO NOTHING;

UPDATE limits SET cap = (SELECT d.cap FROM temp.declared d WHERE d.key = limits.key)
WHERE key IN (SELECT d.key FROM temp.declared d)
  AND cap <> (SELECT d.cap FROM temp.declared d WHERE d.key = limits.key);
