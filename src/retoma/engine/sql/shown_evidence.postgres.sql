-- The evidence these jobs show.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
SELECT DISTINCT sha256 FROM job_evidence
WHERE job IN (SELECT CAST(job AS bigint) FROM json_array_elements_text(CAST(:jobs AS json)) AS j(job));
