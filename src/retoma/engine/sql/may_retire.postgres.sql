-- Whether this role may delete what is old.
-- Twin: roles are asked about here; there every process may.
SELECT has_table_privilege('retoma.jobs', 'DELETE')
   AND has_function_privilege('retoma.retire_audit(bigint, timestamptz)', 'EXECUTE');
