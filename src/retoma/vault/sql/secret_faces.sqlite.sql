-- What may be shown of the secrets of many rows; nothing for those that have none.
-- Twin: sets arrive by json_each here, by json_array_elements there.
SELECT s.row, s.last4 FROM json_each(:rows) m
JOIN secrets s ON s.owner = :owner AND s.field = :field AND s.row = m.value;
