-- Whether one may go on from a cursor: this database has been there, and not too many events ago.
-- Twin: snapshots here, rows there. A restored database has not been where its future was.
SELECT 1 WHERE pg_snapshot_xmax(CAST(:old AS pg_snapshot)) <= pg_snapshot_xmax(pg_current_snapshot())
  AND NOT EXISTS (SELECT 1 FROM events WHERE xid >= pg_snapshot_xmax(CAST(:old AS pg_snapshot))
                  OFFSET :far LIMIT 1);
