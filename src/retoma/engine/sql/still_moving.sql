-- Whether jobs of this batch are still to be moved into it.
SELECT 1 FROM fillings WHERE batch = :batch;
