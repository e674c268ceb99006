-- Put missions into the Banco de Missões; nobody takes them up.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO ads_missions (id, date_start, date_end, media_type, languages, created_by, created_at)
SELECT t.id, t.date_start, t.date_end, t.media_type, t.languages, :actor, (SELECT clock())
FROM json_to_recordset(CAST(:rows AS json)) AS t(id text, date_start date, date_end date,
    media_type text, languages json);
