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
