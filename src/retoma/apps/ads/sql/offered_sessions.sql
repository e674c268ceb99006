-- The workers whose sessions missions may have.
SELECT name FROM pool_items WHERE pool = 'ads.sessions' AND state = 'on' ORDER BY name;
