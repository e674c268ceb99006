-- All evidence lies in the database. What lies on a shelf is no longer found.

DROP TRIGGER evidence_moves_in;

DROP TRIGGER evidence_leaves_its_place;

DROP TABLE places_left;

ALTER TABLE job_evidence DROP COLUMN cut_from;

ALTER TABLE evidence DROP COLUMN used_at;

ALTER TABLE evidence DROP COLUMN stored_at;

ALTER TABLE evidence DROP COLUMN place;
