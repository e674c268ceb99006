-- What happened in a match is told anew, or no longer.
DELETE FROM partida_eventos WHERE partida = :partida;
