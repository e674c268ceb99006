-- name: list_audit
-- What people did, newest first, from a line on: the audit log, and commands in the timelines of jobs.
-- What was done to people, keys and sessions only where `access` says so.
-- A line is found by when it was written, then by where it stands.
SELECT at, source, x, y, actor, verb, subject, details FROM (
    SELECT at, source, x, y, actor, verb, subject, details FROM (
        SELECT at, 0 AS source, id AS x, 0 AS y, actor, verb, subject, CAST(details AS text) AS details
        FROM audit
        WHERE at <= :at AND at >= :since
          AND (:access OR NOT (verb LIKE 'key.%' OR verb LIKE 'person.%' OR verb LIKE 'session.%'
                               OR verb = 'authz_denied'))
          AND (at < :at OR 0 < :source OR (0 = :source AND id < :x))
        ORDER BY at DESC, id DESC LIMIT :look) told
    UNION ALL
    SELECT at, source, x, y, actor, verb, subject, details FROM (
        SELECT at, 1 AS source, job AS x, seq AS y, actor, 'job.' || type AS verb,
               'job ' || job AS subject, CAST(details AS text) AS details
        FROM events
        WHERE (type IN ('again', 'unparked', 'discarded', 'cancel_requested')
               OR (type IN ('canceled', 'skipped') AND epoch IS NULL))
          AND at <= :at AND at >= :since
          AND (at < :at OR 1 < :source
               OR (1 = :source AND (job < :x OR (job = :x AND seq < :y))))
        ORDER BY at DESC, job DESC, seq DESC LIMIT :look) commanded) lines
ORDER BY at DESC, source DESC, x DESC, y DESC LIMIT :look;
