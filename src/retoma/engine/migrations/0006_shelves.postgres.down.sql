-- All evidence lies in the database. What lies on a shelf is no longer found.

DROP TRIGGER evidence_moves_in ON evidence;

DROP TRIGGER evidence_leaves_its_place ON evidence;

DROP FUNCTION leave_place_of_evidence();

DROP TABLE places_left;

ALTER TABLE job_evidence DROP COLUMN cut_from;

ALTER TABLE evidence DROP COLUMN used_at;

ALTER TABLE evidence DROP COLUMN stored_at;

ALTER TABLE evidence DROP COLUMN place;
