-- Matches stay, with their events and statistics; how they were scraped stays as plain tables.
DROP TABLE IF EXISTS scrape_tasks_kept;

CREATE TABLE scrape_tasks_kept AS SELECT * FROM scrape_tasks;

DROP TABLE IF EXISTS scrape_jobs_kept;

CREATE TABLE scrape_jobs_kept AS SELECT * FROM scrape_jobs;

DROP VIEW scrape_jobs;

DROP VIEW scrape_tasks;

DROP TABLE match_tasks;

DROP TABLE match_runs;

DROP INDEX partidas_match;

DROP TABLE IF EXISTS times_kept;

ALTER TABLE times RENAME TO times_kept;

DROP TABLE IF EXISTS partidas_kept;

ALTER TABLE partidas RENAME TO partidas_kept;

DROP TABLE IF EXISTS partida_eventos_kept;

ALTER TABLE partida_eventos RENAME TO partida_eventos_kept;

DROP TABLE IF EXISTS partida_estatisticas_kept;

ALTER TABLE partida_estatisticas RENAME TO partida_estatisticas_kept;

DROP TABLE IF EXISTS match_dropped_kept;

ALTER TABLE match_dropped RENAME TO match_dropped_kept;

DROP TABLE IF EXISTS match_sizes_kept;

ALTER TABLE match_sizes RENAME TO match_sizes_kept;
