-- name: claims_under_way
-- Transactions in which a claim may be under way that began before this statement: none.
-- Twin: claims run beside a pause there; SQLite has one writer, and whoever writes was before or after.
SELECT NULL WHERE false;
