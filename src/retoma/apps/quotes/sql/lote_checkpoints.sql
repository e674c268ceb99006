-- Where the quotes of a lote stand that are at work now; bounded by slots.
SELECT coalesce(checkpoint, 'INIT'), count(*) FROM jobs
WHERE runner > '' AND batch = :lote
GROUP BY coalesce(checkpoint, 'INIT');
