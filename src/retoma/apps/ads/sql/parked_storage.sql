-- The job that stores the ads of a mission, where it is parked.
SELECT j.id FROM ads_missions m JOIN jobs j ON j.id = m.storage
WHERE m.id = :mission AND j.state = 'parked';
