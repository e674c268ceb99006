-- Whether missions wait for a session: those in the queue, and those to be tried again that no worker has.
SELECT EXISTS (SELECT 1 FROM ads_missions WHERE status = 'queued')
    OR EXISTS (SELECT 1 FROM ads_missions m JOIN jobs j ON j.id = m.extraction
               WHERE m.status = 'running' AND m.checkpoint = 'extracao'
                 AND j.state IN ('waiting', 'running')
                 AND NOT EXISTS (SELECT 1 FROM ads_workers w WHERE w.mission = m.id));
