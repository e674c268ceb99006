-- What the last attempt of a parked job said.
SELECT details ->> 'why' FROM events WHERE job = :job AND type = 'parked' ORDER BY seq DESC LIMIT 1;
