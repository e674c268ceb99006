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
