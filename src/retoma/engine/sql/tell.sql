-- One line of the audit log that belongs to no job.
INSERT INTO audit (at, actor, verb, subject, details)
VALUES ((SELECT clock()), :actor, :verb, :subject, :details);
