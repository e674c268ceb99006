-- Tell of batches whose last open job has ended, of those just folded. Once for each finishing.
-- Twin: an object of counts is made by json_object_agg here, by json_group_object there.
-- A batch with tallies still to be folded is left to the next fold, which will meet it again.
INSERT INTO audit (at, actor, verb, subject, details)
SELECT (SELECT clock()), :actor, 'batch.finished', CAST(counted.batch AS text),
       json_object_agg(counted.state, counted.n ORDER BY counted.state) FILTER (WHERE counted.n <> 0)
FROM (
    SELECT c.batch, c.state, sum(c.n) AS n
    FROM counts c JOIN json_each(:batches) touched ON c.batch = CAST(touched.key AS bigint)
    WHERE NOT EXISTS (SELECT FROM tallies t WHERE t.batch = c.batch)
    GROUP BY c.batch, c.state) counted
GROUP BY counted.batch
HAVING sum(CASE WHEN counted.state IN ('waiting', 'running', 'parked')
                THEN abs(counted.n) ELSE 0 END) = 0
   AND sum(counted.n) > 0
RETURNING subject, details;
