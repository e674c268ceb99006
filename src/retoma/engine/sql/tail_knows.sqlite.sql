-- Whether this database has been where a cursor stands: the event it names is still that one.
-- Twin: rows here, snapshots there.
SELECT 1 FROM events WHERE rowid = :row AND job = :job AND seq = :seq
UNION ALL
SELECT 1 WHERE :row = 0 AND :job = 0 AND :seq = 0;
