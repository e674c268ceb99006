-- What another job has made of the same, if it is not too old.
SELECT value, cost, job FROM reuse
WHERE hash = :hash AND (CAST(:age AS double precision) IS NULL
                        OR at > clock_in(-CAST(:age AS double precision)));
