-- Whether there is, or was, such a key.
SELECT 1 FROM api_keys WHERE id = :id;
