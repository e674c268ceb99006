-- To which spans the claims of these jobs belong; only asked where somebody traces.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
SELECT id, traceparent FROM jobs
WHERE id IN (SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS bigint))
  AND traceparent IS NOT NULL;
