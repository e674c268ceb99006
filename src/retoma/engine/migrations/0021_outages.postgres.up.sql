-- When a thing of a pool last failed: many of a vendor at a time are its vendor's outage.
ALTER TABLE pool_items ADD COLUMN failed_at timestamptz;
