-- Which of these keys stand in submissions that are still coming in.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
SELECT key, hash, filling FROM filling_jobs
WHERE kind = :kind AND key = ANY(ARRAY(SELECT json_array_elements_text(CAST(:keys AS json))));
