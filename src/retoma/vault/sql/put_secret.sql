-- A place has this secret from now on, and no other.
INSERT INTO secrets (owner, field, row, ref, key, last4, set_at, set_by)
VALUES (:owner, :field, :row, :ref, :key, :last4, (SELECT clock()), :actor)
ON CONFLICT (owner, field, row) DO UPDATE
SET ref = excluded.ref, key = excluded.key, last4 = excluded.last4, set_at = excluded.set_at,
    set_by = excluded.set_by;
