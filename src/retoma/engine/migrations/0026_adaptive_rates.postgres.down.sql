-- Rates are what a person allows again, or what was found last.
UPDATE rates SET rate = coalesce(bound, rate);
ALTER TABLE rates DROP COLUMN refused_at;
ALTER TABLE rates DROP COLUMN looked_at;
ALTER TABLE rates DROP COLUMN recorded;
ALTER TABLE rates DROP COLUMN refused;
ALTER TABLE rates DROP COLUMN usual;
ALTER TABLE rates DROP COLUMN blocked;
ALTER TABLE rates DROP COLUMN passed;
ALTER TABLE rates DROP COLUMN cuts;
ALTER TABLE rates DROP COLUMN ceiling;
ALTER TABLE rates DROP COLUMN adaptive;
ALTER TABLE rates DROP COLUMN bound;
