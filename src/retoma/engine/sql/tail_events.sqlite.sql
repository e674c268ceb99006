-- Events between two row numbers, a slice at a time.
-- Twin: row numbers here, snapshots there. One writer: their order is the order of the commits.
SELECT e.job, e.seq, e.epoch, e.type, e.at, e.actor, e.details, j.kind, j.batch, e.rowid
FROM events e LEFT JOIN jobs j ON j.id = e.job
WHERE e.rowid > :old AND e.rowid <= :new
ORDER BY e.rowid
LIMIT :most;
