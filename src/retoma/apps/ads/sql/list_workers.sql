-- Every worker, as the document shows it.
SELECT id, name, url, storage_domain, status, session_count, current_mission_id, current_proxy_id,
       active, last_test_ok
FROM workers ORDER BY id;
