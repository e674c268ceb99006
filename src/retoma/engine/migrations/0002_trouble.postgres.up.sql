-- What keeps a runner from its work, told with its beat; nothing while nothing does.

ALTER TABLE runners ADD COLUMN trouble text;
