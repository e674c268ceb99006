-- Late writes that changed nothing, counted.
-- Twin: minutes are cut differently.
INSERT INTO tallies (runner, kind, to_state, event, minute, n)
VALUES (:boot, :kind, 'refused', 'refused', date_trunc('minute', (SELECT clock())), :n);
