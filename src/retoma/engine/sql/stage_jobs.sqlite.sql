-- Add the jobs of one slice to a submission that is still coming in.
-- Twin: sets of rows arrive by json_array_elements there, by jsonb_each here.
INSERT INTO filling_jobs (filling, slice, place, kind, key, hash, limits, payload)
SELECT :filling, :slice, :offset + o.key, :kind, o.value ->> 'key', o.value ->> 'hash',
       o.value -> 'limits', o.value -> 'payload'
FROM jsonb_each(:rows) o;
