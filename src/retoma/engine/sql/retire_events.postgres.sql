-- Delete all events of each of these jobs that is no more, if the last of them is old enough.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
DELETE FROM events
WHERE job = ANY(ARRAY(
    SELECT old.id FROM (
        SELECT CAST(job AS bigint) AS id
        FROM json_array_elements_text(CAST(:jobs AS json)) AS j(job)) old
    WHERE NOT EXISTS (SELECT FROM jobs WHERE id = old.id)
      AND (SELECT max(at) FROM events WHERE job = old.id) < :events_before))
RETURNING job;
