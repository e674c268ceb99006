-- name: count_denied
-- Count one more in a line that was written.
-- Twin: a statement here; there a function of the owner, for a role that may not change a line.
UPDATE audit SET details = :details WHERE id = :id;
