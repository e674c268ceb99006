-- What the rules of the orchestrator need to remember besides.
-- How often a person let a parked mission go on: from then on what it does is done anew.
ALTER TABLE ads_missions ADD COLUMN parks integer NOT NULL DEFAULT 0;

ALTER TABLE ads_missions ADD COLUMN resends integer NOT NULL DEFAULT 0;

-- Since when a session waits for a proxy.
ALTER TABLE ads_sessions ADD COLUMN waits_since integer;

-- Why it has ended.
ALTER TABLE ads_sessions ADD COLUMN ended_for text;

-- Ads that a writer could not store, as it tells of them.
CREATE TABLE ads_failed_items (
    mission  text NOT NULL,
    place    integer NOT NULL,
    data     text,
    error    text NOT NULL,
    PRIMARY KEY (mission, place)
) STRICT;

CREATE TRIGGER ads_unpark AFTER UPDATE OF state ON jobs
WHEN NEW.kind IN ('ads.extraction', 'ads.storage') AND OLD.state = 'parked'
     AND NEW.state = 'waiting' AND OLD.reason IS NOT 'unknown_remote'
BEGIN
    UPDATE ads_missions SET parks = parks + 1 WHERE extraction = NEW.id OR storage = NEW.id;
END;
