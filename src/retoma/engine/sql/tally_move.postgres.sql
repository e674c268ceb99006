-- Jobs moved by a person, for the counters.
-- Twin: minutes are cut differently.
INSERT INTO tallies (batch, kind, from_state, to_state, code, minute, n)
VALUES (:batch, :kind, :was, :to, :code, date_trunc('minute', (SELECT clock())), :n);
