-- Lines of another database's log, in its own time.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO ads_logs (mission, event, details, at)
SELECT t.mission, t.event, t.details, coalesce(t.at, (SELECT clock()))
FROM json_to_recordset(CAST(:rows AS json)) AS t(mission text, event text, details json, at timestamptz);
