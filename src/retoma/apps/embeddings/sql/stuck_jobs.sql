-- What the index (status, lockExpiresAt) was for: jobs whose lock has expired, by the few runners whose lease is over.
WITH over AS MATERIALIZED (
    SELECT boot FROM runners WHERE state = 'lost' OR (state IN ('alive', 'leaving') AND lease_until < (SELECT clock())))
SELECT j.id FROM over o JOIN jobs j ON j.runner = o.boot WHERE j.kind = 'embeddings.document';
