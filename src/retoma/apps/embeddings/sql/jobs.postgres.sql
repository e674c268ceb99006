-- name: queue_jobs_of
-- These jobs, as the document's table has them, the newest first.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT q.id, q."jobType", q.status, q.attempts, q."maxAttempts", q."lockedBy", q."lockedAt",
       q."lockExpiresAt", q."lastHeartbeatAt", q."processingStartedAt", q."processedAt", q."createdAt",
       q."runAt", q."documentId", q."errorCode", q."correlationId"
FROM queue_jobs q
WHERE q.id IN (SELECT CAST(json_array_elements_text(CAST(:jobs AS json)) AS bigint))
ORDER BY q.id DESC;
