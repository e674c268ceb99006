-- name: skip_ids
-- Give no job an id that one may have had which this database has forgotten.
-- Twin: sequences here, a table of them on SQLite.
SELECT setval(pg_get_serial_sequence('jobs', 'id'),
              nextval(pg_get_serial_sequence('jobs', 'id')) + :skip);
