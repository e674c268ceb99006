-- Whether this database has been where a cursor stands: a restored one has not.
-- Twin: snapshots here, rows there.
SELECT 1 WHERE pg_snapshot_xmax(CAST(:old AS pg_snapshot)) <= pg_snapshot_xmax(pg_current_snapshot());
