-- The open alerts of every rule but one: what is in force is few, whatever history there is.
SELECT rule, subject FROM alerts WHERE closed_at IS NULL AND rule <> :rule
ORDER BY rule, subject;
