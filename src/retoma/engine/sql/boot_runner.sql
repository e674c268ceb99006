-- A new life of a runner: nothing it wrote before counts as its own. Once, also if the answer got lost.
INSERT INTO runners (boot, name, host, pid, pid_started, version, state, since, beat_at,
                     lease_until, slots, knows)
VALUES (:boot, :name, :host, :pid, :pid_started, :version, 'alive', (SELECT clock()),
        (SELECT clock()), clock_in(:lease), :slots, :knows)
ON CONFLICT (boot) DO NOTHING;
