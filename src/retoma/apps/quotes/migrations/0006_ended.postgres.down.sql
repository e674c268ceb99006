-- The average of a day is asked no more.
DROP INDEX quotes_ended;
