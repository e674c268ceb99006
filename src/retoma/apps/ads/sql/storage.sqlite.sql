-- name: keep_failed_items
-- Keep the ads of a mission that could not be stored, as the writer tells of them.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO ads_failed_items (mission, place, data, error)
SELECT :mission, value ->> 'place', value -> 'data', value ->> 'error'
FROM json_each(:rows) WHERE true
ON CONFLICT DO NOTHING;
