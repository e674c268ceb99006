-- No profiles.
DROP TABLE writer_profiles;
