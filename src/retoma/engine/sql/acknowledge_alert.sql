-- Say that somebody knows of an open alert; the first who says so stays.
UPDATE alerts SET acknowledged_at = (SELECT clock()), acknowledged_by = :actor
WHERE id = :id AND closed_at IS NULL AND acknowledged_at IS NULL
RETURNING rule, subject;
