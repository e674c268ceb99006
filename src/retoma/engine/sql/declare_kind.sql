-- Write down where a kind belongs, as the code has it.
INSERT INTO kinds (name, application, queue) VALUES (:name, :application, :queue)
ON CONFLICT (name) DO UPDATE SET application = excluded.application, queue = excluded.queue;
