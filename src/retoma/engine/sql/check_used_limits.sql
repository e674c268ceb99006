-- How many running jobs each limit counts, for the checker.
SELECT key, used FROM limits;
