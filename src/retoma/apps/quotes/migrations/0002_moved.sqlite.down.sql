-- The view stays: it shows no less than before, and what is kept when all of it goes is kept by it.
DROP INDEX quotes_adopted;
