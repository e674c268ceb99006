-- What was counted in a match is told anew, or no longer.
DELETE FROM partida_estatisticas WHERE partida = :partida;
