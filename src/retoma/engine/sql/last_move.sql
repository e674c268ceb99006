-- The last move of a job, and who made it.
SELECT type, at, actor, details FROM events
WHERE job = :job AND type NOT IN
    ('step_begun', 'step_saved', 'cancel_requested', 'stalled', 'evidence', 'discarded')
ORDER BY seq DESC LIMIT 1;
