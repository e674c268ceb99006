-- A place has no secret any more; no row if it had none.
DELETE FROM secrets WHERE owner = :owner AND field = :field AND row = :row
RETURNING row;
