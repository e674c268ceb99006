-- Remember what was taken over; those that were not before.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO ads_adopted (source, sort, old, new)
SELECT :source, :sort, t.old, t.new
FROM json_to_recordset(CAST(:rows AS json)) AS t(old text, new text)
ON CONFLICT DO NOTHING
RETURNING old;
