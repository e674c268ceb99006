-- Only what else of a vendor worked tells an outage from a thing that is at fault.
ALTER TABLE pool_items DROP COLUMN failed_at;
