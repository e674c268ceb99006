-- Somebody's column refers to jobs or batches: what it names is never retired.
INSERT INTO refers (table_name, column_name, what) VALUES (:table_name, :column_name, :what)
ON CONFLICT (table_name, column_name) DO UPDATE SET what = excluded.what;
