-- Which quotes these jobs are of.
-- Twin: sets arrive by json_array_elements_text there, by json_each here.
SELECT job, id FROM quotes WHERE job IN (SELECT value FROM json_each(:jobs));
