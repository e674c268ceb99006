-- Whether any secret is sealed with another key than this one.
SELECT 1 FROM secrets WHERE key IS NOT NULL AND key <> :key LIMIT 1;
