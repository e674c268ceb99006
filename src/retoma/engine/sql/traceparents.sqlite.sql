-- To which spans the claims of these jobs belong; only asked where somebody traces.
-- Twin: sets of rows arrive by json_each here, by json_array_elements_text there.
SELECT id, traceparent FROM jobs
WHERE id IN (SELECT value FROM json_each(:ids)) AND traceparent IS NOT NULL;
