-- How many bytes there are of this digest, if all of them are, and the first piece.
SELECT c.size, p.bytes FROM document_contents c
LEFT JOIN document_pieces p ON p.sha256 = c.sha256 AND p.n = 0
WHERE c.sha256 = :sha256 AND c.whole;
