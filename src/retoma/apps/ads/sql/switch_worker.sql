-- Whether a worker is given anything to do; nothing comes back where that was so already.
-- One whose finds nobody could fetch is not activated, whoever takes its storage_domain away meanwhile.
UPDATE ads_workers SET active = :active, updated_at = (SELECT clock())
WHERE id = :id AND deleted_at IS NULL AND active <> :active
  AND (storage_domain IS NOT NULL OR :active = FALSE)
RETURNING id;
