-- Switch a thing on or off by hand, with a reason. Switched on, it begins anew.
UPDATE pool_items SET state = :state, reason = :reason,
    failures = CASE WHEN :state = 'on' THEN 0 ELSE failures END,
    failed_from = CASE WHEN :state = 'on' THEN NULL ELSE failed_from END,
    uses = CASE WHEN :state = 'on' AND state = 'off' THEN 0 ELSE uses END
WHERE pool = :pool AND name = :name
RETURNING id;
