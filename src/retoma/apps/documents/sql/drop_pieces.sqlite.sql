-- The pieces of contents that were dropped.
-- Twin: a set of texts arrives by json_array_elements_text there, by json_each here.
DELETE FROM document_pieces WHERE sha256 IN (SELECT value FROM json_each(:dropped));
