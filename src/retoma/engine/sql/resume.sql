-- It may be claimed again. Zero rows: it was not paused.
DELETE FROM pauses WHERE scope = :scope AND name = :name RETURNING name;
