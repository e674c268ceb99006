-- Whether a mission is canceled, and what works at it has not been seen to end.
SELECT 1 FROM ads_missions m JOIN jobs j ON j.id IN (m.extraction, m.storage)
WHERE m.id = :mission AND m.canceled_by IS NOT NULL AND j.state IN ('waiting', 'running', 'parked');
