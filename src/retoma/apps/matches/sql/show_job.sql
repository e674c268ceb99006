-- One run, as the document's table has it.
SELECT v.id, v.league, v.season, v.round, v.status, v.expected, v.stored, v.pending, v.running, v.not_yet,
       v.failed, v.left_out, v.dropped, v.listed, v.complete, v.open, v.discovery_state, v.discovery_code, v.error, v.snapshot,
       v.batch, v.discovery, v.created_by, v.created_at, v.completed_at, v.ended_at
FROM scrape_jobs v WHERE v.id = :run;
