-- The last cause of trouble of a mission that goes on.
UPDATE ads_missions SET error_code = :code, error_message = :message
WHERE id = :mission AND status = 'running';
