-- name: size_of_database
-- How many bytes the whole database has, then its largest tables with their indexes.
-- Twin: one file there, that does not tell its tables apart without being read.
-- Asks the file system for lengths of files and reads none of them, whatever is in them.
SELECT NULL AS name, pg_database_size(current_database()) AS bytes, 0 AS free
UNION ALL
SELECT * FROM (
    SELECT c.relname, pg_total_relation_size(c.oid), 0
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname = ANY(current_schemas(false))
    ORDER BY 2 DESC, 1 LIMIT :most
) tables;
