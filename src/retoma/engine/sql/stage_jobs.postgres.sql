-- Add the jobs of one slice to a submission that is still coming in.
-- Twin: sets of rows arrive by json_array_elements here, by jsonb_each there.
INSERT INTO filling_jobs (filling, slice, place, kind, key, hash, limits, payload)
SELECT :filling, :slice, :offset + sent.place - 1, :kind, sent.row ->> 'key', sent.row ->> 'hash',
       sent.row -> 'limits', sent.row -> 'payload'
FROM json_array_elements(CAST(:rows AS json)) WITH ORDINALITY AS sent(row, place);
