-- What was counted in a match.
SELECT name, home, away FROM partida_estatisticas WHERE partida = :partida ORDER BY name;
