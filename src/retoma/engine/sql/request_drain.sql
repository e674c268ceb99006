-- Ask a living runner to leave once its jobs have ended, once; it is fenced by its boot, used by nobody else.
UPDATE runners SET drain_at = (SELECT clock())
WHERE boot = :boot AND state = 'alive' AND drain_at IS NULL
RETURNING name;
