-- Forget what claims took up that hold their jobs no more.
DELETE FROM embeddings_flights
WHERE NOT EXISTS (
    SELECT 1 FROM jobs h
    WHERE h.id = embeddings_flights.job AND h.epoch = embeddings_flights.epoch AND h.state = 'running');
