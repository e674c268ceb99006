-- What parked quotes wait for, of one lote or of all: by code, how many, and the newest of them.
SELECT code, count(*), max(id) FROM jobs
WHERE kind = 'quotes.quote' AND state = 'parked' AND state IN ('parked', 'skipped', 'dead', 'canceled')
  AND (CAST(:lote AS bigint) IS NULL OR batch = :lote)
GROUP BY code ORDER BY 2 DESC, 1;
