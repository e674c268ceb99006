-- name: health
-- What a database tells of itself: its time, how it writes, what is not folded, what is held by nobody.
-- Twin: the settings that matter have other names there.
SELECT (SELECT clock()), (SELECT journal_mode FROM pragma_journal_mode),
       (SELECT synchronous FROM pragma_synchronous),
       (SELECT count(*) FROM (SELECT 1 FROM tallies LIMIT 100001) unfolded),
       (SELECT min(minute) FROM tallies),
       (SELECT count(*) FROM jobs j LEFT JOIN runners r ON r.boot = j.runner
        WHERE j.runner > '' AND (r.boot IS NULL OR r.state NOT IN ('alive', 'leaving')
            OR r.lease_until < (SELECT clock())));
