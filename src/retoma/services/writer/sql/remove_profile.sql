-- Forget a profile.
DELETE FROM writer_profiles WHERE name = :name;
