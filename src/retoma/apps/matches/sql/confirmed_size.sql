-- How many matches a person says a round has.
SELECT matches FROM match_sizes WHERE league = :league AND season = :season AND round = :round;
