-- Budgets of batches behind which jobs wait. Each step looks up the next in an index, however many wait.
WITH RECURSIVE gates (gate, place) AS (
    SELECT (SELECT min(aside) FROM jobs
            WHERE state = 'waiting' AND aside >= 'budget:batch:' AND aside < 'budget:batch;'), 1
    UNION ALL
    SELECT (SELECT min(j.aside) FROM jobs j
            WHERE j.state = 'waiting' AND j.aside > g.gate AND j.aside < 'budget:batch;'),
           g.place + 1
    FROM gates g WHERE g.gate IS NOT NULL AND g.place < :most
)
SELECT gate FROM gates WHERE gate IS NOT NULL;
