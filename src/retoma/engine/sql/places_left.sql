-- Places of one shelf whose bytes nobody needs, the oldest first, a bite at a time; and what time it is.
SELECT place, (SELECT clock()) FROM places_left
WHERE substr(place, 1, length(:base)) = :base AND at < (SELECT clock_in(:grace))
ORDER BY at, place LIMIT :bite;
