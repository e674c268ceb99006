-- Whether a writer is given anything to do; nothing comes back where that was so already.
UPDATE ads_writers SET active = :active, updated_at = (SELECT clock())
WHERE id = :id AND deleted_at IS NULL AND active <> :active
RETURNING id;
