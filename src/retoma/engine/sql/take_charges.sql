-- Take the oldest charges out, to be added up; one who has the duty does so at a time.
DELETE FROM charges WHERE id IN (SELECT id FROM charges ORDER BY id LIMIT :bite)
RETURNING at, job, batch, kind, application, provider, model, unit, sort, amount;
