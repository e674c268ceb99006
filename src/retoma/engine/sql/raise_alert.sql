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
