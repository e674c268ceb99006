-- name: last_pass
-- What the last pass of retention deleted, and when it ended.
SELECT value FROM meta WHERE name = 'retention';

-- name: sum_evidence
-- How many pieces of evidence there are and how many bytes, in the database or beside it; up to a bound.
SELECT count(*), coalesce(sum(size), 0) FROM (SELECT size FROM evidence LIMIT :bound) few;
