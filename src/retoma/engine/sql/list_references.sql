-- Whose columns refer to jobs or batches.
SELECT table_name, column_name, what FROM refers ORDER BY table_name, column_name;
