-- Number the next event of a parked job, whose epoch nobody holds.
UPDATE jobs SET seq = seq + 1 WHERE id = :job AND state = 'parked' RETURNING seq;
