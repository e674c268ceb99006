-- Numbers up to this one are not given to new quotes.
-- Twin: the sequence is moved there; SQLite never gives a number below one that was there.
SELECT :last;
