-- What the rules of the orchestrator need to remember besides.
-- How often a person let a parked mission go on: from then on what it does is done anew.
ALTER TABLE ads_missions ADD COLUMN parks integer NOT NULL DEFAULT 0;

ALTER TABLE ads_missions ADD COLUMN resends integer NOT NULL DEFAULT 0;

-- Since when a session waits for a proxy.
ALTER TABLE ads_sessions ADD COLUMN waits_since timestamptz;

-- Why it has ended.
ALTER TABLE ads_sessions ADD COLUMN ended_for text COLLATE "C";

-- Ads that a writer could not store, as it tells of them.
CREATE TABLE ads_failed_items (
    mission  text COLLATE "C" NOT NULL,
    place    integer NOT NULL,
    data     json,
    error    text NOT NULL,
    PRIMARY KEY (mission, place)
);

CREATE FUNCTION ads_unpark_job() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE ads_missions SET parks = parks + 1 WHERE extraction = NEW.id OR storage = NEW.id;
    RETURN NULL;
END $$;

CREATE TRIGGER ads_unpark AFTER UPDATE OF state ON jobs FOR EACH ROW
WHEN (NEW.kind IN ('ads.extraction', 'ads.storage') AND OLD.state = 'parked'
      AND NEW.state = 'waiting' AND OLD.reason IS DISTINCT FROM 'unknown_remote')
EXECUTE FUNCTION ads_unpark_job();
