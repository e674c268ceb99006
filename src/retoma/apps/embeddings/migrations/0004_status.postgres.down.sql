-- Status is read row by row again.
DROP INDEX embeddings_jobs_status;
