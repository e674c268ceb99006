-- One line of the audit log that belongs to no job.
INSERT INTO audit (at, actor, verb, subject) VALUES ((SELECT clock()), :actor, :verb, :subject);
