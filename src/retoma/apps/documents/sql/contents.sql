-- name: begin_content
-- Say that these bytes are wanted, and about to come if they are not there: whether all of them are.
INSERT INTO document_contents (sha256, size, at) VALUES (:sha256, :size, (SELECT clock()))
ON CONFLICT (sha256) DO UPDATE SET at = excluded.at
RETURNING whole;

-- name: drop_contents
-- Drop what no document names and nobody has wanted for a while, a few at a time, pieces and all.
DELETE FROM document_contents
WHERE at < (SELECT clock_in(:grace)) AND sha256 IN (
    SELECT c.sha256 FROM document_contents c
    WHERE c.at < (SELECT clock_in(:grace))
      AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.sha256 = c.sha256)
    ORDER BY c.sha256 LIMIT :bite)
RETURNING sha256;

-- name: end_content
-- All of it is there, if that is so.
UPDATE document_contents SET whole = true
WHERE sha256 = :sha256 AND size = (
    SELECT coalesce(sum(length(bytes)), 0) FROM document_pieces WHERE sha256 = :sha256)
RETURNING whole;

-- name: get_content
-- How many bytes there are of this digest, if all of them are, and the first piece.
SELECT c.size, p.bytes FROM document_contents c
LEFT JOIN document_pieces p ON p.sha256 = c.sha256 AND p.n = 0
WHERE c.sha256 = :sha256 AND c.whole;

-- name: get_piece
-- One piece of a content.
SELECT bytes FROM document_pieces WHERE sha256 = :sha256 AND n = :n;

-- name: keep_piece
-- Keep one piece; whoever sends the same bytes at the same time sends the same piece.
INSERT INTO document_pieces (sha256, n, bytes) VALUES (:sha256, :n, :bytes)
ON CONFLICT (sha256, n) DO NOTHING;
