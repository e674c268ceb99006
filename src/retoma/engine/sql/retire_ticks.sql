-- Delete old ticks; the last one of each schedule stays to be shown.
DELETE FROM ticks
WHERE at < :ticks_before
  AND at < (SELECT max(t.at) FROM ticks t WHERE t.schedule = ticks.schedule)
RETURNING at;
