-- name: drop_pieces
-- The pieces of contents that were dropped.
-- Twin: a set of texts arrives by json_each there, by json_array_elements_text here.
DELETE FROM document_pieces
WHERE sha256 IN (SELECT json_array_elements_text(CAST(:dropped AS json)));

-- name: want_contents
-- Hold on to contents that documents are about to name: those of them that are whole.
-- Twin: a set of texts arrives by json_each there, by json_array_elements_text here.
UPDATE document_contents SET at = (SELECT clock())
WHERE whole AND sha256 IN (SELECT json_array_elements_text(CAST(:wanted AS json)))
RETURNING sha256;
