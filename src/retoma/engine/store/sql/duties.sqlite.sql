-- name: holds_duty
-- Whether this boot holds the duty in this very term, and nobody else can take it before we commit.
-- Twin: the row is locked there; here nobody else writes meanwhile.
SELECT d.term FROM duties d
WHERE d.name = :name AND d.boot = :boot AND d.term = :term
  AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving');

-- name: take_duties
-- Take the duties that nobody alive holds; then what this boot holds, and when each wants to be done.
-- Twin: nobody else writes meanwhile here, so nothing can be locked by another.
UPDATE duties SET boot = :boot, term = term + 1
WHERE name IN (SELECT value FROM json_each(:names))
  AND NOT EXISTS (SELECT 1 FROM runners r WHERE r.boot = duties.boot AND r.state = 'alive')
  AND (SELECT state FROM runners WHERE boot = :boot) = 'alive';

SELECT d.name, d.term,
       CASE d.name WHEN 'fold' THEN coalesce(
           (SELECT minute FROM tallies LIMIT 1), (SELECT at FROM charges LIMIT 1))
                   WHEN 'schedule' THEN (SELECT min(next_at) FROM schedules WHERE paused_at IS NULL)
       END, (SELECT clock())
FROM duties d WHERE d.boot = :boot AND (SELECT state FROM runners WHERE boot = :boot) = 'alive';
