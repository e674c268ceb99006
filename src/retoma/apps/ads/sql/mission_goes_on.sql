-- Whether a mission is still to be done.
SELECT status = 'running' FROM ads_missions WHERE id = :mission;
