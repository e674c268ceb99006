-- Evidence may lie outside: on a shelf. What is no longer shown leaves its place to be emptied.

ALTER TABLE evidence ADD COLUMN place text;

-- Null: nobody has said yet that the bytes are there.
ALTER TABLE evidence ADD COLUMN stored_at integer;

ALTER TABLE evidence ADD COLUMN used_at integer NOT NULL DEFAULT 0;

ALTER TABLE job_evidence ADD COLUMN cut_from integer;

-- Places whose bytes nobody needs: removed after their rows, so that no row ever misses its bytes.
CREATE TABLE places_left (
    place  text PRIMARY KEY,
    at     integer NOT NULL
) STRICT;

CREATE TRIGGER evidence_leaves_its_place AFTER DELETE ON evidence
WHEN OLD.place IS NOT NULL
BEGIN
    INSERT INTO places_left (place, at) VALUES (OLD.place, clock()) ON CONFLICT (place) DO NOTHING;
END;

CREATE TRIGGER evidence_moves_in AFTER UPDATE OF place ON evidence
WHEN OLD.place IS NOT NULL AND NEW.place IS NULL
BEGIN
    INSERT INTO places_left (place, at) VALUES (OLD.place, clock()) ON CONFLICT (place) DO NOTHING;
END;
