-- Rows of another table become quotes, by their own numbers where those are free; none becomes two.
-- Twin: sets arrive by json_to_recordset here, by json_each there; a number is given by the sequence here.
INSERT INTO quotes (id, code, kind, description, created_by, created_at, was)
SELECT coalesce(t.id, nextval(pg_get_serial_sequence('quotes', 'id'))), t.code, t.kind, t.description,
       :actor, coalesce(t.created_at, (SELECT clock())), t.was
FROM json_to_recordset(CAST(:rows AS json)) AS t(
    id bigint, code text, kind text, description text, created_at timestamptz, was json)
ON CONFLICT DO NOTHING
RETURNING id, was ->> 'adopted_id';
