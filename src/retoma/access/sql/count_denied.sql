-- Count one more in a line that was written.
UPDATE audit SET details = :details WHERE id = :id;
