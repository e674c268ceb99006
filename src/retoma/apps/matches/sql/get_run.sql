-- What a story is told of its run.
SELECT id, league, season, round, looks, discovery, expected, correlation FROM match_runs WHERE id = :run;
