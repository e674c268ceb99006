-- Say whether the orchestrator is to work; nothing comes back where that was so already.
UPDATE ads_orchestrator SET wish = :wish, changed_by = :actor, changed_at = (SELECT clock())
WHERE wish <> :wish
RETURNING one;
