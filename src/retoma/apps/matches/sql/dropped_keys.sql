-- Matches of a round that a person says never were.
SELECT match_key FROM match_dropped WHERE league = :league AND season = :season AND round = :round;
