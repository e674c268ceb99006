-- When the next schedule ticks, and what time it is.
SELECT min(next_at), (SELECT clock()) FROM schedules WHERE paused_at IS NULL;
