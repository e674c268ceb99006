-- name: queue_jobs_of
-- These jobs, as the document's table has them, the newest first.
-- Twin: sets arrive by json_to_recordset on PostgreSQL, by json_each on SQLite.
SELECT q.id, q."jobType", q.status, q.attempts, q."maxAttempts", q."lockedBy", q."lockedAt",
       q."lockExpiresAt", q."lastHeartbeatAt", q."processingStartedAt", q."processedAt", q."createdAt",
       q."runAt", q."documentId", q."errorCode", q."correlationId"
FROM queue_jobs q WHERE q.id IN (SELECT value FROM json_each(:jobs)) ORDER BY q.id DESC;
