-- Forget the ads of a mission that could not be stored.
DELETE FROM ads_failed_items WHERE mission = :mission;
