-- Nothing of this submission is left to be moved or dropped.
DELETE FROM fillings WHERE id = :filling;
