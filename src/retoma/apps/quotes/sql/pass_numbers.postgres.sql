-- Numbers up to this one are not given to new quotes.
-- Twin: the sequence is moved here; SQLite never gives a number below one that was there.
SELECT setval(pg_get_serial_sequence('quotes', 'id'),
              greatest(CAST(:last AS bigint), (SELECT coalesce(max(id), 1) FROM quotes)));
