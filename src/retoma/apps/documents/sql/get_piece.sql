-- One piece of a content.
SELECT bytes FROM document_pieces WHERE sha256 = :sha256 AND n = :n;
