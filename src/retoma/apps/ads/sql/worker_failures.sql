-- How many sessions of a worker have failed in a row.
SELECT failures FROM ads_workers WHERE id = :worker;
