-- Evidence may lie outside: on a shelf. What is no longer shown leaves its place to be emptied.

ALTER TABLE evidence ADD COLUMN place text;

-- Null: nobody has said yet that the bytes are there.
ALTER TABLE evidence ADD COLUMN stored_at timestamptz;

ALTER TABLE evidence ADD COLUMN used_at timestamptz NOT NULL DEFAULT 'epoch';

ALTER TABLE job_evidence ADD COLUMN cut_from bigint;

-- Places whose bytes nobody needs: removed after their rows, so that no row ever misses its bytes.
CREATE TABLE places_left (
    place  text PRIMARY KEY,
    at     timestamptz NOT NULL
);

CREATE FUNCTION leave_place_of_evidence() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO retoma.places_left (place, at) VALUES (OLD.place, retoma.clock())
    ON CONFLICT (place) DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER evidence_leaves_its_place AFTER DELETE ON evidence
    FOR EACH ROW WHEN (OLD.place IS NOT NULL) EXECUTE FUNCTION leave_place_of_evidence();

CREATE TRIGGER evidence_moves_in AFTER UPDATE OF place ON evidence
    FOR EACH ROW WHEN (OLD.place IS NOT NULL AND NEW.place IS NULL)
    EXECUTE FUNCTION leave_place_of_evidence();
