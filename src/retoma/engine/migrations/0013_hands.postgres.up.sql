-- Whom a thing of a pool has worked for: a kind that nothing works for must not blame the things.
ALTER TABLE pool_items ADD COLUMN worked_by text;
