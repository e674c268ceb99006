-- Nobody tells of trouble any more.

ALTER TABLE runners DROP COLUMN trouble;
