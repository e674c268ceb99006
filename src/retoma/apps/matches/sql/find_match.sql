-- A match that is stored, by who played it.
SELECT id FROM partidas
WHERE league = :league AND season = :season AND round = :round AND home = :home AND away = :away;
