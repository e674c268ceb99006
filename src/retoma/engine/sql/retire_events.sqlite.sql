-- Delete all events of each of these jobs that is no more, if the last of them is old enough.
-- Twin: a statement here; there a function of the owner, for a role that may not delete.
DELETE FROM events
WHERE job IN (
    SELECT o.value FROM json_each(:jobs) o
    WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE id = o.value)
      AND (SELECT max(at) FROM events WHERE job = o.value) < :events_before)
RETURNING job;
