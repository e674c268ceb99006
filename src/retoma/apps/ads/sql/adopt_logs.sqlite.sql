-- Lines of another database's log, in its own time.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO ads_logs (mission, event, details, at)
SELECT value ->> 'mission', value ->> 'event', value -> 'details',
       coalesce(value ->> 'at', (SELECT clock()))
FROM json_each(:rows);
