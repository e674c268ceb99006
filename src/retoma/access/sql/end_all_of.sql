-- Everything that a person could come in with ends.
UPDATE api_keys SET revoked_at = (SELECT clock()) WHERE person = :person AND revoked_at IS NULL;

UPDATE sign_in_sessions SET ended_at = (SELECT clock())
WHERE person = :person AND ended_at IS NULL;

DELETE FROM sign_in_links WHERE person = :person;
