-- The gates of a sort that somebody waits at.
SELECT DISTINCT aside FROM jobs
WHERE state = 'waiting' AND aside >= :sort AND aside < :beyond;
