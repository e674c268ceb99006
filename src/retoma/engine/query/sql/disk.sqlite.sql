-- name: size_of_database
-- How many bytes the whole database has, and how many of them are free for what comes next.
-- Twin: many files there, one for each table; here a table's share is known only by reading it all.
SELECT NULL AS name, c.page_count * s.page_size AS bytes, f.freelist_count * s.page_size AS free
FROM pragma_page_count() c, pragma_page_size() s, pragma_freelist_count() f
LIMIT :most;
