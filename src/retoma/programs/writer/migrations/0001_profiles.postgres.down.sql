-- No profiles.
DROP TABLE retoma.writer_profiles;
