-- All of it is there, if that is so.
UPDATE document_contents SET whole = true
WHERE sha256 = :sha256 AND size = (
    SELECT coalesce(sum(length(bytes)), 0) FROM document_pieces WHERE sha256 = :sha256)
RETURNING whole;
