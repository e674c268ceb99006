-- What the code says holds again. The room there is now; zero rows: there is no such limit.
UPDATE limits SET by_hand = NULL WHERE key = :key
RETURNING cap - used;
