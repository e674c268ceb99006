-- What the last pass of retention deleted, and when it ended.
SELECT value FROM meta WHERE name = 'retention';
