-- Where bytes lie, or the bytes themselves; and what time it is.
SELECT codec, size, bytes, place, stored_at IS NOT NULL, (SELECT clock()) FROM evidence WHERE sha256 = :sha256;
