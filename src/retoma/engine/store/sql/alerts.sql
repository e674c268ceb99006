-- name: acknowledge_alert
-- Say that somebody knows of an open alert; the first who says so stays.
UPDATE alerts SET acknowledged_at = (SELECT clock()), acknowledged_by = :actor
WHERE id = :id AND closed_at IS NULL AND acknowledged_at IS NULL
RETURNING rule, subject;

-- name: any_shown
-- Whether something that has only happened has been shown for long enough.
SELECT 1 FROM alerts a
WHERE a.rule = :rule AND a.closed_at IS NULL
  AND a.since < (SELECT clock_in(-CAST(:shown AS double precision)))
LIMIT 1;

-- name: any_untold
-- Whether something was raised or closed of late of which nobody has been told yet.
SELECT 1 WHERE EXISTS (
    SELECT 1 FROM alerts a
    WHERE a.raised_told_at IS NULL
      AND a.since > (SELECT clock_in(-CAST(:stale AS double precision))))
OR EXISTS (
    SELECT 1 FROM alerts a
    WHERE a.closed_told_at IS NULL AND a.closed_at IS NOT NULL AND a.raised_told_at IS NOT NULL
      AND a.closed_at > (SELECT clock_in(-CAST(:stale AS double precision))));

-- name: close_alert
-- Close the open alert of a rule about a subject; nothing where there is none.
UPDATE alerts SET closed_at = (SELECT clock())
WHERE rule = :rule AND subject = :subject AND closed_at IS NULL
RETURNING id;

-- name: close_finished
-- Close what is open of batches that have finished once more.
UPDATE alerts SET closed_at = (SELECT clock())
WHERE rule = :rule AND closed_at IS NULL
  AND subject IN (SELECT o.key FROM json_each(:batches) o);

-- name: close_shown
-- Close what has only happened and has been shown for long enough, a bite of it.
UPDATE alerts SET closed_at = (SELECT clock())
WHERE id IN (SELECT a.id FROM alerts a
             WHERE a.rule = :rule AND a.closed_at IS NULL
               AND a.since < (SELECT clock_in(-CAST(:shown AS double precision)))
             ORDER BY a.subject LIMIT :bite)
  AND closed_at IS NULL;

-- name: get_alert
-- One alert.
SELECT id, rule, subject, severity, details, since, closed_at, acknowledged_at, acknowledged_by,
       silenced_until, silenced_by,
       CASE WHEN silenced_until > (SELECT clock()) THEN 1 ELSE 0 END
FROM alerts WHERE id = :id;

-- name: list_alerts
-- Alerts, newest first, a page of them.
SELECT id, rule, subject, severity, details, since, closed_at, acknowledged_at, acknowledged_by,
       silenced_until, silenced_by,
       CASE WHEN silenced_until > (SELECT clock()) THEN 1 ELSE 0 END
FROM alerts
WHERE id < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY id DESC LIMIT :limit;

-- name: list_open_alerts
-- Alerts in force, newest first, a page of them; read from the index of what is open.
SELECT id, rule, subject, severity, details, since, closed_at, acknowledged_at, acknowledged_by,
       silenced_until, silenced_by,
       CASE WHEN silenced_until > (SELECT clock()) THEN 1 ELSE 0 END
FROM alerts
WHERE closed_at IS NULL AND rule >= ''
  AND id < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY id DESC LIMIT :limit;

-- name: may_alert
-- Whether any rule could hold, or an alert is open: all that a look asks where nothing happens.
SELECT 1 WHERE EXISTS (SELECT 1 FROM alerts WHERE closed_at IS NULL AND rule >= '')
    OR EXISTS (SELECT 1 FROM jobs WHERE runner > '')
    OR EXISTS (SELECT 1 FROM jobs WHERE queue >= '' AND state = 'waiting'
                 AND turn IS NOT NULL AND aside IS NULL AND lost < 2)
    OR EXISTS (SELECT 1 FROM jobs WHERE queue >= '' AND state = 'waiting'
                 AND turn IS NOT NULL AND aside IS NULL AND lost >= 2)
    OR EXISTS (SELECT 1 FROM jobs WHERE queue >= '' AND state = 'waiting' AND turn IS NULL)
    OR EXISTS (SELECT 1 FROM jobs WHERE state = 'waiting' AND aside IS NOT NULL AND aside >= '')
    OR EXISTS (SELECT 1 FROM counts WHERE batch = -1 AND state = 'parked' AND n > 0)
    OR EXISTS (SELECT 1 FROM tallies)
    OR EXISTS (SELECT 1 FROM (SELECT DISTINCT kind FROM counts WHERE batch = -1) k
               JOIN pace p ON p.kind = k.kind
                AND p.minute >= (SELECT clock_in(-CAST(:seconds AS double precision))))
    OR EXISTS (SELECT 1 FROM runners WHERE state = 'alive' AND trouble IS NOT NULL)
    OR EXISTS (SELECT 1 FROM breakers WHERE state <> 'closed')
    OR EXISTS (SELECT 1 FROM budgets
               WHERE scope IN ('application', 'provider') AND shut IS NOT NULL);

-- name: open_alerts
-- The open alerts of every rule but one: what is in force is few, whatever history there is.
SELECT rule, subject FROM alerts WHERE closed_at IS NULL AND rule <> :rule
ORDER BY rule, subject;

-- name: raise_alert
-- Raise an alert, unless it is open already. One that was silenced stays silent when it comes again.
INSERT INTO alerts (rule, subject, severity, details, since, silenced_until, silenced_by)
VALUES (:rule, :subject, :severity, :details, (SELECT clock()),
        (SELECT a.silenced_until FROM alerts a
         WHERE a.rule = :rule AND a.subject = :subject AND a.silenced_until > (SELECT clock())
         ORDER BY a.silenced_until DESC LIMIT 1),
        (SELECT a.silenced_by FROM alerts a
         WHERE a.rule = :rule AND a.subject = :subject AND a.silenced_until > (SELECT clock())
         ORDER BY a.silenced_until DESC LIMIT 1))
ON CONFLICT (rule, subject) WHERE closed_at IS NULL DO NOTHING
RETURNING id;

-- name: raise_finished
-- Raise an alert for each batch that has finished. What was silenced stays silent when it comes again.
INSERT INTO alerts (rule, subject, severity, details, since, silenced_until, silenced_by)
SELECT :rule, o.key, :severity, o.value, (SELECT clock()),
       (SELECT a.silenced_until FROM alerts a
        WHERE a.rule = :rule AND a.subject = o.key AND a.silenced_until > (SELECT clock())
        ORDER BY a.silenced_until DESC LIMIT 1),
       (SELECT a.silenced_by FROM alerts a
        WHERE a.rule = :rule AND a.subject = o.key AND a.silenced_until > (SELECT clock())
        ORDER BY a.silenced_until DESC LIMIT 1)
FROM json_each(:batches) o;

-- name: silence_alert
-- Tell nobody of an open alert, nor of the next ones of its rule and subject, until a time.
UPDATE alerts SET silenced_until = (SELECT clock_in(CAST(:seconds AS double precision))),
    silenced_by = :actor
WHERE id = :id AND closed_at IS NULL
RETURNING rule, subject;

-- name: tell_closed
-- Take what was closed of late, once somebody had been told that it began, and mark that as told.
UPDATE alerts SET closed_told_at = (SELECT clock())
WHERE id IN (SELECT a.id FROM alerts a
             WHERE a.closed_told_at IS NULL AND a.closed_at IS NOT NULL
               AND a.closed_at > (SELECT clock_in(-CAST(:stale AS double precision)))
               AND a.raised_told_at IS NOT NULL
             ORDER BY a.closed_at LIMIT :bite)
  AND closed_told_at IS NULL
RETURNING id, subject, CASE WHEN silenced_until > (SELECT clock()) OR severity = 'info'
                            THEN 1 ELSE 0 END;

-- name: tell_raised
-- Take what was raised of late and has been told to nobody yet, and mark it as told.
-- Of what nobody hears that it began, nobody hears that it is over.
UPDATE alerts SET raised_told_at = (SELECT clock()),
    closed_told_at = CASE WHEN silenced_until > (SELECT clock()) THEN (SELECT clock()) END
WHERE id IN (SELECT a.id FROM alerts a
             WHERE a.raised_told_at IS NULL
               AND a.since > (SELECT clock_in(-CAST(:stale AS double precision)))
             ORDER BY a.since LIMIT :bite)
  AND raised_told_at IS NULL
RETURNING id, subject, CASE WHEN silenced_until > (SELECT clock()) THEN 1 ELSE 0 END;

-- name: waited_budgets
-- Budgets of batches behind which jobs wait. Each step looks up the next in an index, however many wait.
WITH RECURSIVE gates (gate, place) AS (
    SELECT (SELECT min(aside) FROM jobs
            WHERE state = 'waiting' AND aside >= 'budget:batch:' AND aside < 'budget:batch;'), 1
    UNION ALL
    SELECT (SELECT min(j.aside) FROM jobs j
            WHERE j.state = 'waiting' AND j.aside > g.gate AND j.aside < 'budget:batch;'),
           g.place + 1
    FROM gates g WHERE g.gate IS NOT NULL AND g.place < :most
)
SELECT gate FROM gates WHERE gate IS NOT NULL;
