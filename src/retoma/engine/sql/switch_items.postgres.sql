-- Switch things on or off by hand, with a reason. Switched on, they begin anew.
-- Twin: sets arrive by json_array_elements here, by json_each there.
UPDATE pool_items SET state = :state, reason = :reason,
    failures = CASE WHEN :state = 'on' THEN 0 ELSE failures END,
    failed_from = CASE WHEN :state = 'on' THEN NULL ELSE failed_from END,
    failed_at = CASE WHEN :state = 'on' THEN NULL ELSE failed_at END,
    uses = CASE WHEN :state = 'on' AND state = 'off' THEN 0 ELSE uses END
WHERE id = ANY(ARRAY(
    SELECT CAST(m.id AS bigint) FROM json_array_elements_text(CAST(:items AS json)) AS m(id)));
