-- Of documents with the same content the first is the origin of the others.
UPDATE documents SET origin = (
    SELECT min(o.id) FROM documents o
    WHERE o.execution = documents.execution AND o.sha256 = documents.sha256)
WHERE execution = :execution AND EXISTS (
    SELECT 1 FROM documents o
    WHERE o.execution = documents.execution AND o.sha256 = documents.sha256
      AND o.id < documents.id);
