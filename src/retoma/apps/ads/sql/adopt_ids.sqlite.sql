-- Remember what was taken over; those that were not before.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO ads_adopted (source, sort, old, new)
SELECT :source, :sort, value ->> 'old', value ->> 'new' FROM json_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING old;
