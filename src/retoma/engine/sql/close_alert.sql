-- Close the open alert of a rule about a subject; nothing where there is none.
UPDATE alerts SET closed_at = (SELECT clock())
WHERE rule = :rule AND subject = :subject AND closed_at IS NULL
RETURNING id;
