-- Keep one piece; whoever sends the same bytes at the same time sends the same piece.
INSERT INTO document_pieces (sha256, n, bytes) VALUES (:sha256, :n, :bytes)
ON CONFLICT (sha256, n) DO NOTHING;
