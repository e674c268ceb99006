-- name: cancels
-- Jobs of one runner that somebody wants canceled, and did not when they were claimed.
-- One that was claimed to have its remote work stopped must not be stopped in that.
SELECT id, epoch FROM jobs WHERE runner = :boot AND cancel_at >= started_at;
