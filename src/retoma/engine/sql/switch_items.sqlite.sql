-- Switch things on or off by hand, with a reason. Switched on, they begin anew.
-- Twin: sets arrive by json_array_elements there, by json_each here.
UPDATE pool_items SET state = :state, reason = :reason,
    failures = CASE WHEN :state = 'on' THEN 0 ELSE failures END,
    failed_from = CASE WHEN :state = 'on' THEN NULL ELSE failed_from END,
    failed_at = CASE WHEN :state = 'on' THEN NULL ELSE failed_at END,
    uses = CASE WHEN :state = 'on' AND state = 'off' THEN 0 ELSE uses END
WHERE id IN (SELECT value FROM json_each(:items));
