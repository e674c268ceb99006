-- Submissions in slices whose lease is over: somebody else must finish or undo them.
SELECT id, batch FROM fillings WHERE lease_until < (SELECT clock()) ORDER BY id;
