-- name: count_denied
-- Count one more in a line that was written.
-- Twin: a function of the owner changes the line here, for a role that may not; a statement there.
SELECT * FROM retoma.count_denied(:id, CAST(:details AS json));
