-- A line of the audit log for each of these subjects.
-- Twin: sets arrive by json_array_elements here, by json_each there.
INSERT INTO audit (at, actor, verb, subject, details)
SELECT (SELECT clock()), :actor, :verb, m.subject, CAST(:details AS json)
FROM json_array_elements_text(CAST(:subjects AS json)) AS m(subject);
