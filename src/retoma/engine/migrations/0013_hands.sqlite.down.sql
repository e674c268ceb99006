-- Nobody knows any more whom a thing has worked for.
ALTER TABLE pool_items DROP COLUMN worked_by;
