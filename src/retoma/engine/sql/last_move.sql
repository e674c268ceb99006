-- The last move of a job, and who made it.
SELECT type, at, actor, details FROM events
WHERE job = :job AND type NOT IN
    ('step_begun', 'step_saved', 'step_failed', 'step_ended', 'cancel_requested', 'stalled',
     'evidence', 'held', 'freed', 'discarded')
ORDER BY seq DESC LIMIT 1;
