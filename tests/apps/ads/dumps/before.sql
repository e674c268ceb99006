-- A database of the shape before §3.7's migration: job_id, no `finalizado`, no writers.
CREATE TYPE mission_status AS ENUM ('queued', 'running', 'completed', 'failed', 'canceled');
CREATE TYPE checkpoint_type AS ENUM ('atribuido', 'extracao', 'armazenamento');
CREATE TABLE workers (id text PRIMARY KEY, name varchar(100) NOT NULL, url varchar(500) NOT NULL, api_key varchar(200) NOT NULL, storage_domain varchar(255), current_mission_id text, active boolean DEFAULT true, last_test_at timestamptz, last_test_ok boolean, created_at timestamptz DEFAULT now(), updated_at timestamptz DEFAULT now());
CREATE TABLE proxies (id text PRIMARY KEY, name text, host varchar(200) NOT NULL, port integer, username varchar(100), password varchar(100), active boolean DEFAULT true, fail_count integer DEFAULT 0, last_used_at timestamptz, last_test_at timestamptz, last_test_ok boolean, created_at timestamptz DEFAULT now());
CREATE TABLE missions (id text PRIMARY KEY, date_start date NOT NULL, date_end date NOT NULL, media_type varchar(10) NOT NULL, languages text[] NOT NULL, status mission_status NOT NULL DEFAULT 'queued', checkpoint checkpoint_type, worker_id text REFERENCES workers (id), job_id varchar(100), proxy_used varchar(200), ads_count integer, error_code varchar(20), error_message text, retry_count integer DEFAULT 0, created_at timestamptz DEFAULT now(), queued_at timestamptz, started_at timestamptz, finished_at timestamptz);
CREATE TABLE mission_logs (id text PRIMARY KEY, mission_id text REFERENCES missions (id) ON DELETE CASCADE, event text NOT NULL, details jsonb, timestamp timestamptz DEFAULT now());
INSERT INTO workers (id, name, url, api_key, storage_domain, active, created_at) VALUES
('w-1', 'Worker um', 'https://w1.example.org', 'CANARY-w1', 's1.example.org', true, '2025-01-01 10:00+00'),
('w-2', 'Worker dois', 'https://w2.example.org/', 'CANARY-w2', 's2.example.org', false, '2025-01-02 10:00+00'),
('w-3', 'Worker um outra vez', 'https://w1.example.org', 'CANARY-w3', NULL, true, '2025-01-03 10:00+00');
INSERT INTO proxies (id, name, host, port, username, password, active, fail_count) VALUES
('p-1', 'br', 'p1.example.org', 8080, 'u', 'CANARY-p1', true, 1),
('p-2', 'br', 'p2.example.org', 8080, 'u', 'CANARY-p2', false, 3),
('p-3', NULL, 'p3.example.org', NULL, NULL, NULL, true, 0),
('p-4', 'x', 'not a host', 1, NULL, NULL, true, 0);
INSERT INTO missions (id, date_start, date_end, media_type, languages, status, checkpoint, worker_id, job_id, proxy_used, ads_count, retry_count, created_at, queued_at, started_at, finished_at) VALUES
('m-b', '2025-01-15', '2025-01-16', 'video', '{pt,en}', 'completed', 'armazenamento', 'w-1', 'scrape_1', 'br', 1500, 1, '2025-01-15 10:00+00', '2025-01-15 10:00:01+00', '2025-01-15 10:00:05+00', '2025-01-15 10:16:16+00'),
('m-a', '2025-01-17', '2025-01-17', 'all', '{pt}', 'running', 'extracao', 'w-2', 'scrape_2', 'br', NULL, 0, '2025-01-16 10:00+00', '2025-01-16 10:00+00', '2025-01-16 10:01+00', NULL),
('m-c', '2025-01-18', '2025-01-18', 'image', '{es}', 'queued', 'atribuido', NULL, NULL, NULL, NULL, 0, '2025-01-17 10:00+00', '2025-01-17 10:00+00', NULL, NULL),
('m-d', '2025-01-20', '2025-01-19', 'all', '{pt}', 'queued', NULL, NULL, NULL, NULL, NULL, 0, '2025-01-18 10:00+00', NULL, NULL, NULL);
INSERT INTO mission_logs (id, mission_id, event, details, timestamp) VALUES
('l-1', 'm-b', 'mission_queued', '{"queued_by": "user"}', '2025-01-15 10:00:01+00'),
('l-2', 'm-b', 'scrape_completed', '{"worker_job_id": "scrape_1", "ads_count": 1500, "duration_ms": 975000}', '2025-01-15 10:15:30+00'),
('l-3', 'm-b', 'something_of_theirs', NULL, '2025-01-15 10:15:31+00'),
('l-4', NULL, 'session_failed', '{"proxy_name": "br"}', '2025-01-15 10:15:32+00');
