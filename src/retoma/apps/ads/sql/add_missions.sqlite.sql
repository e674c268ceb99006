-- Put missions into the Banco de Missões; nobody takes them up.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO ads_missions (id, date_start, date_end, media_type, languages, created_by, created_at)
SELECT value ->> 'id', value ->> 'date_start', value ->> 'date_end', value ->> 'media_type',
       value -> 'languages', :actor, (SELECT clock())
FROM json_each(:rows);
