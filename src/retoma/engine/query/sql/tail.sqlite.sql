-- name: tail_audit
-- Lines of the audit log between two of them.
-- Twin: row numbers here, snapshots there.
SELECT id, at, actor, verb, subject, details FROM audit
WHERE id > max(:old, :after) AND id <= :new
ORDER BY id
LIMIT :most;

-- name: tail_events
-- Events between two row numbers, a slice at a time.
-- Twin: row numbers here, snapshots there. One writer: their order is the order of the commits.
SELECT e.job, e.seq, e.epoch, e.type, e.at, e.actor, e.details, j.kind, j.batch, e.rowid
FROM events e LEFT JOIN jobs j ON j.id = e.job
WHERE e.rowid > :old AND e.rowid <= :new
ORDER BY e.rowid
LIMIT :most;

-- name: tail_head
-- The cursor of now: everything up to the last rows has been told, nothing else.
-- Twin: the last row here, a snapshot there. One writer: what is committed later comes after it.
-- The last event is named too: where retention took it, its number may be another's one day.
SELECT coalesce(e.rowid, 0) || '.' || coalesce(e.job, 0) || '.' || coalesce(e.seq, 0) || ':'
       || coalesce((SELECT max(id) FROM audit), 0)
FROM (SELECT 1) LEFT JOIN events e ON e.rowid = (SELECT max(rowid) FROM events);

-- name: tail_knows
-- Whether one may go on from a cursor: the event it names is still that one, and not too many ago.
-- Twin: rows here, snapshots there.
SELECT 1 WHERE (SELECT coalesce(max(rowid), 0) FROM events) - :row <= :far
  AND ((:row = 0 AND :job = 0 AND :seq = 0)
       OR EXISTS (SELECT 1 FROM events WHERE rowid = :row AND job = :job AND seq = :seq));
