-- What may be shown of the secrets of many rows; nothing for those that have none.
-- Twin: sets arrive by json_array_elements here, by json_each there.
SELECT s.row, s.last4 FROM json_array_elements_text(CAST(:rows AS json)) AS m(value)
JOIN secrets s ON s.owner = :owner AND s.field = :field AND s.row = m.value;
