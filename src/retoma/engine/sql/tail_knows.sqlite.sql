-- Whether one may go on from a cursor: the event it names is still that one, and not too many ago.
-- Twin: rows here, snapshots there.
SELECT 1 WHERE (SELECT coalesce(max(rowid), 0) FROM events) - :row <= :far
  AND ((:row = 0 AND :job = 0 AND :seq = 0)
       OR EXISTS (SELECT 1 FROM events WHERE rowid = :row AND job = :job AND seq = :seq));
