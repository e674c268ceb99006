-- Rates that are found by trying: what is known of the service, and what a person allows at most.
ALTER TABLE rates ADD COLUMN bound real CHECK (bound > 0);
ALTER TABLE rates ADD COLUMN adaptive integer NOT NULL DEFAULT 0 CHECK (adaptive IN (0, 1));
ALTER TABLE rates ADD COLUMN ceiling real;
ALTER TABLE rates ADD COLUMN cuts integer NOT NULL DEFAULT 0;
ALTER TABLE rates ADD COLUMN passed integer NOT NULL DEFAULT 0;
ALTER TABLE rates ADD COLUMN blocked integer NOT NULL DEFAULT 0;
ALTER TABLE rates ADD COLUMN usual real;
ALTER TABLE rates ADD COLUMN refused integer NOT NULL DEFAULT 0;
ALTER TABLE rates ADD COLUMN recorded real;
ALTER TABLE rates ADD COLUMN looked_at integer;
ALTER TABLE rates ADD COLUMN refused_at integer;

-- What a person has set is a bound; what an application brought along is where nobody set anything.
UPDATE rates SET bound = rate WHERE EXISTS (
    SELECT 1 FROM audit WHERE audit.verb = 'rate.set'
      AND substr(audit.subject, 1, length(rates.key) + 2) = rates.key || ': ');
