-- Whether somebody has asked this runner to leave; read without a beat.
SELECT 1 FROM runners WHERE boot = :boot AND drain_at IS NOT NULL;
