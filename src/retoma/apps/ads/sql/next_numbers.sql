-- Take so many numbers of a sort; the last of them.
UPDATE ads_numbers SET last = last + :n WHERE name = :name RETURNING last;
