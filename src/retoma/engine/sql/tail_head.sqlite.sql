-- The cursor of now: everything up to the last rows has been told, nothing else.
-- Twin: the last row here, a snapshot there. One writer: what is committed later comes after it.
-- The last event is named too: where retention took it, its number may be another's one day.
SELECT coalesce(e.rowid, 0) || '.' || coalesce(e.job, 0) || '.' || coalesce(e.seq, 0) || ':'
       || coalesce((SELECT max(id) FROM audit), 0)
FROM (SELECT 1) LEFT JOIN events e ON e.rowid = (SELECT max(rowid) FROM events);
