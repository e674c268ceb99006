-- Runners whose lease is over are lost, because a person says so: whoever was deaf beats again, and is fenced.
UPDATE runners SET state = 'lost'
WHERE state IN ('alive', 'leaving') AND lease_until < (SELECT clock())
RETURNING boot, name;
