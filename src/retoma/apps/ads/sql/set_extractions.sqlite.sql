-- Which jobs extract these missions.
-- Twin: sets arrive by json_each_text there, by json_each here.
UPDATE ads_missions SET extraction = o.value FROM json_each(:jobs) o WHERE ads_missions.id = o.key;
