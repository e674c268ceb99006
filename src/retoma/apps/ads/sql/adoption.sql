-- name: adopted
-- What was taken over of a sort from a source, between two of its ids.
SELECT old, new FROM ads_adopted
WHERE source = :source AND sort = :sort AND old >= :first AND (CAST(:last AS text) IS NULL OR old <= :last);
