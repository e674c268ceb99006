-- One job, as the document's table has it.
SELECT q.id, q."jobType", q.status, q.attempts, q."maxAttempts", q."lockedBy", q."lockedAt",
       q."lockExpiresAt", q."lastHeartbeatAt", q."processingStartedAt", q."processedAt", q."createdAt",
       q."runAt", q."documentId", q."errorCode", q."correlationId"
FROM queue_jobs q WHERE q.id = :job;
