-- Lists of the unusual ends walk the primary key again.
DROP INDEX jobs_ends;
