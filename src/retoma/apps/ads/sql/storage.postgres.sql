-- name: keep_failed_items
-- Keep the ads of a mission that could not be stored, as the writer tells of them.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO ads_failed_items (mission, place, data, error)
SELECT :mission, t.place, t.data, t.error
FROM json_to_recordset(CAST(:rows AS json)) AS t(place integer, data json, error text)
ON CONFLICT DO NOTHING;
