-- Runners that say they live on this host: their processes can be looked for.
SELECT boot, pid, pid_started FROM runners
WHERE host = :host AND state IN ('alive', 'leaving') AND boot <> :boot;
