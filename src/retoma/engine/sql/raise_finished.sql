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
