-- The pieces of contents that were dropped.
-- Twin: a set of texts arrives by json_each there, by json_array_elements_text here.
DELETE FROM document_pieces
WHERE sha256 IN (SELECT json_array_elements_text(CAST(:dropped AS json)));
