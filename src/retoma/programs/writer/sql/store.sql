-- name: list_profiles
-- Every profile, by name.
SELECT document FROM writer_profiles ORDER BY name;

-- name: put_profile
-- Write a profile down, in the place of one that was called the same.
INSERT INTO writer_profiles (name, asked, document, put_by, put_at)
VALUES (:name, :asked, :document, :actor, (SELECT clock()))
ON CONFLICT (name) DO UPDATE SET asked = excluded.asked, document = excluded.document,
    put_by = excluded.put_by, put_at = excluded.put_at;

-- name: remove_profile
-- Forget a profile.
DELETE FROM writer_profiles WHERE name = :name;
