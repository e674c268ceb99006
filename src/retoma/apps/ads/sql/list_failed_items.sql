-- The ads of a mission that could not be stored, in their order, a page of them.
SELECT place, data, error FROM ads_failed_items
WHERE mission = :mission AND place > :after ORDER BY place LIMIT :n;
