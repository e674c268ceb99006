-- Whether somebody has asked that the extraction of a mission be canceled.
SELECT 1 FROM ads_missions m JOIN jobs j ON j.id = m.extraction
WHERE m.id = :mission AND (m.canceled_by IS NOT NULL OR j.cancel_at IS NOT NULL);
