-- Rows of another table become quotes, by their own numbers where those are free; none becomes two.
-- Twin: sets arrive by json_to_recordset there, by json_each here; a number is given by the sequence there.
INSERT INTO quotes (id, code, kind, description, created_by, created_at, was)
SELECT value ->> 'id', value ->> 'code', value ->> 'kind', value ->> 'description', :actor,
       coalesce(value ->> 'created_at', (SELECT clock())), value -> 'was'
FROM json_each(:rows) WHERE true ORDER BY key
ON CONFLICT DO NOTHING
RETURNING id, was ->> 'adopted_id';
