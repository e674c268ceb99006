-- Whether this boot holds the duty in this very term, and nobody else can take it before we commit.
-- Twin: the row is locked here; there nobody else writes meanwhile.
SELECT d.term FROM duties d
WHERE d.name = :name AND d.boot = :boot AND d.term = :term
  AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
FOR NO KEY UPDATE OF d;
