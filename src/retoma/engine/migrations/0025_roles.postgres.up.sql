-- Let the owner alone change and delete events and the audit log, through functions that others may call.
-- Called by any role but the owner's, what deletes spares whatever is younger than an hour; what counts
-- changes only a line of the last minutes that says somebody was denied.
CREATE FUNCTION retoma.retire_events(retired json, events_before timestamptz) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER SET search_path = retoma, pg_temp
AS $$
DELETE FROM events
WHERE job = ANY(ARRAY(
    SELECT old.id FROM (
        SELECT CAST(job AS bigint) AS id
        FROM json_array_elements_text(retired) AS j(job)) old
    WHERE NOT EXISTS (SELECT FROM jobs WHERE id = old.id)
      AND (SELECT max(at) FROM events WHERE job = old.id) < CASE
          WHEN session_user = current_user THEN events_before
          ELSE least(events_before, retoma.clock_in(-3600)) END))
RETURNING job
$$;

CREATE FUNCTION retoma.retire_audit(bite bigint, events_before timestamptz) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER SET search_path = retoma, pg_temp
AS $$
DELETE FROM audit
WHERE id IN (SELECT id FROM audit ORDER BY id LIMIT bite) AND at < CASE
    WHEN session_user = current_user THEN events_before
    ELSE least(events_before, retoma.clock_in(-3600)) END
RETURNING id
$$;

CREATE FUNCTION retoma.count_denied(line bigint, told json) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER SET search_path = retoma, pg_temp
AS $$
UPDATE audit SET details = told
WHERE id = line AND verb = 'authz_denied' AND at > retoma.clock_in(-300)
RETURNING id
$$;

REVOKE ALL ON FUNCTION retoma.count_denied(bigint, json) FROM PUBLIC;

REVOKE ALL ON FUNCTION retoma.retire_events(json, timestamptz) FROM PUBLIC;

REVOKE ALL ON FUNCTION retoma.retire_audit(bigint, timestamptz) FROM PUBLIC;
