-- Say that these bytes are wanted, and about to come if they are not there: whether all of them are.
INSERT INTO document_contents (sha256, size, at) VALUES (:sha256, :size, (SELECT clock()))
ON CONFLICT (sha256) DO UPDATE SET at = excluded.at
RETURNING whole;
