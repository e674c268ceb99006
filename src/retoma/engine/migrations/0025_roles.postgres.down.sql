-- Forget the functions that change history for roles that may not; the statements go back to the owner.
DROP FUNCTION retoma.count_denied(bigint, json);

DROP FUNCTION retoma.retire_audit(bigint, timestamptz);

DROP FUNCTION retoma.retire_events(json, timestamptz);
