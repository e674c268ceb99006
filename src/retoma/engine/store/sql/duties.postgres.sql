-- name: holds_duty
-- Whether this boot holds the duty in this very term, and nobody else can take it before we commit.
-- Twin: the row is locked here; there nobody else writes meanwhile.
SELECT d.term FROM duties d
WHERE d.name = :name AND d.boot = :boot AND d.term = :term
  AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
FOR NO KEY UPDATE OF d;

-- name: take_duties
-- Take the duties that nobody alive holds; then what this boot holds, and when each wants to be done.
-- Twin: a duty in whose transaction somebody sleeps is passed over here, or every tick would wait.
-- Asked as a value, not as NOT EXISTS: of a join the row that is read anew once somebody else has taken
-- the duty is not asked again, and two would have it.
WITH free AS MATERIALIZED (
    SELECT d.name FROM duties d
    WHERE d.name = ANY(ARRAY(SELECT json_array_elements_text(CAST(:names AS json))))
      AND coalesce((SELECT r.state FROM runners r WHERE r.boot = d.boot), '') <> 'alive'
      AND (SELECT state FROM runners WHERE boot = :boot) = 'alive'
    ORDER BY d.name FOR UPDATE SKIP LOCKED
)
UPDATE duties d SET boot = :boot, term = d.term + 1 FROM free WHERE d.name = free.name;

SELECT d.name, d.term,
       CASE d.name WHEN 'fold' THEN coalesce(
           (SELECT minute FROM tallies LIMIT 1), (SELECT at FROM charges LIMIT 1))
                   WHEN 'schedule' THEN (SELECT min(next_at) FROM schedules WHERE paused_at IS NULL)
       END, (SELECT clock())
FROM duties d WHERE d.boot = :boot AND (SELECT state FROM runners WHERE boot = :boot) = 'alive';
