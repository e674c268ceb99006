-- A line of the audit log for each of these subjects.
-- Twin: sets arrive by json_array_elements there, by json_each here.
INSERT INTO audit (at, actor, verb, subject, details)
SELECT (SELECT clock()), :actor, :verb, m.value, :details FROM json_each(:subjects) m;
