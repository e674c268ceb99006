-- Every profile, by name.
SELECT document FROM writer_profiles ORDER BY name;
