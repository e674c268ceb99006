-- The bytes are gone.
DELETE FROM places_left WHERE place = :place;
