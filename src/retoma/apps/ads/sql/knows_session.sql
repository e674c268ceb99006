-- Whether a worker ever had a session that missions could have.
SELECT 1 FROM pool_items WHERE pool = 'ads.sessions' AND name = :worker;
