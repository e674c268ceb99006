-- Nobody is alerted of anything.
DROP TABLE alerts;

DELETE FROM duties WHERE name IN ('alerts', 'notify');
