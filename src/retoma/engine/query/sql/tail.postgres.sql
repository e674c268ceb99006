-- name: tail_audit
-- Lines of the audit log that one snapshot sees and an earlier one did not.
-- Twin: snapshots here, row numbers there.
SELECT a.id, a.at, a.actor, a.verb, a.subject, a.details
FROM (SELECT * FROM audit WHERE xid >= pg_snapshot_xmax(CAST(:old AS pg_snapshot))
      UNION ALL
      SELECT * FROM audit
      WHERE xid = ANY(ARRAY(SELECT pg_snapshot_xip(CAST(:old AS pg_snapshot))))) a
WHERE pg_visible_in_snapshot(a.xid, CAST(:new AS pg_snapshot)) AND a.id > :after
ORDER BY a.id
LIMIT :most;

-- name: tail_events
-- Events that one snapshot sees and an earlier one did not, a slice at a time.
-- Twin: snapshots here, row numbers there. Waits for nobody: what commits late comes in its poll.
-- Two looks at one index, not an OR: that would need a bitmap, or read everything.
SELECT e.job, e.seq, e.epoch, e.type, e.at, e.actor, e.details, j.kind, j.batch
FROM (SELECT * FROM events WHERE xid >= pg_snapshot_xmax(CAST(:old AS pg_snapshot))
      UNION ALL
      SELECT * FROM events
      WHERE xid = ANY(ARRAY(SELECT pg_snapshot_xip(CAST(:old AS pg_snapshot))))) e
LEFT JOIN jobs j ON j.id = e.job
WHERE pg_visible_in_snapshot(e.xid, CAST(:new AS pg_snapshot))
  AND (e.job, e.seq) > (:job, :seq)
ORDER BY e.job, e.seq
LIMIT :most;

-- name: tail_head
-- The cursor of now: everything that this very snapshot sees has been told, nothing else.
-- Twin: a snapshot here, the last row there.
SELECT CAST(pg_current_snapshot() AS text);

-- name: tail_knows
-- Whether one may go on from a cursor: this database has been there, and not too many events ago.
-- Twin: snapshots here, rows there. A restored database has not been where its future was.
SELECT 1 WHERE pg_snapshot_xmax(CAST(:old AS pg_snapshot)) <= pg_snapshot_xmax(pg_current_snapshot())
  AND NOT EXISTS (SELECT 1 FROM events WHERE xid >= pg_snapshot_xmax(CAST(:old AS pg_snapshot))
                  OFFSET :far LIMIT 1);
