-- Secrets sealed with a new key. Touches none that was set meanwhile.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
UPDATE secrets s SET ref = m.new, key = :key
FROM json_to_recordset(CAST(:rows AS json))
    AS m(owner text, field text, "row" text, old text, new text)
WHERE s.owner = m.owner AND s.field = m.field AND s.row = m."row" AND s.ref = m.old
RETURNING s.row;
