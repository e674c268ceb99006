-- Late writes that changed nothing, counted.
-- Twin: minutes are cut differently.
INSERT INTO tallies (runner, kind, to_state, event, minute, n)
VALUES (:boot, :kind, 'refused', 'refused', (SELECT clock()) / 60000000 * 60000000, :n);
