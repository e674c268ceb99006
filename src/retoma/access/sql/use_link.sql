-- A sign-in link is used; no row if it was used before, is too old, or its person is gone.
UPDATE sign_in_links SET used_at = (SELECT clock())
WHERE id = :id AND used_at IS NULL AND expires_at > (SELECT clock())
  AND EXISTS (SELECT 1 FROM people p WHERE p.id = person AND p.removed_at IS NULL)
RETURNING person, role, (SELECT name FROM people p WHERE p.id = person);
