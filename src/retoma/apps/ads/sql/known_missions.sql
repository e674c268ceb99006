-- Missions of these days that are there already.
SELECT id, date_start, date_end, media_type, languages FROM ads_missions
WHERE deleted_at IS NULL AND CAST(date_start AS text) >= :since AND CAST(date_end AS text) <= :until;
