-- Which jobs extract these missions.
-- Twin: sets arrive by json_each_text here, by json_each there.
UPDATE ads_missions SET extraction = CAST(o.value AS bigint)
FROM json_each_text(CAST(:jobs AS json)) o WHERE ads_missions.id = o.key;
