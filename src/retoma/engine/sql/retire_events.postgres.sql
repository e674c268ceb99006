-- Delete all events of each of these jobs that is no more, if the last of them is old enough.
-- Twin: a function of the owner deletes here, for a role that may not; a statement there.
SELECT * FROM retoma.retire_events(CAST(:jobs AS json), :events_before);
