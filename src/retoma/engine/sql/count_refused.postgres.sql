-- Late writes that changed nothing, counted.
-- Twin: minutes are cut differently.
INSERT INTO tallies (runner, kind, to_state, minute, n)
VALUES (:boot, :kind, 'refused', date_trunc('minute', (SELECT clock())), :n);
