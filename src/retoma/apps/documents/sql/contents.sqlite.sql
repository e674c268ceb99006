-- name: drop_pieces
-- The pieces of contents that were dropped.
-- Twin: a set of texts arrives by json_array_elements_text there, by json_each here.
DELETE FROM document_pieces WHERE sha256 IN (SELECT value FROM json_each(:dropped));

-- name: want_contents
-- Hold on to contents that documents are about to name: those of them that are whole.
-- Twin: a set of texts arrives by json_array_elements_text there, by json_each here.
UPDATE document_contents SET at = (SELECT clock())
WHERE whole AND sha256 IN (SELECT value FROM json_each(:wanted))
RETURNING sha256;
