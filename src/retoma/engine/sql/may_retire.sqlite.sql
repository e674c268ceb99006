-- Whether this role may delete what is old.
-- Twin: every process may here; there roles are asked about.
SELECT 1;
