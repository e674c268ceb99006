-- What happened in a match, in its order.
SELECT minute, added, side, kind, player, other FROM partida_eventos WHERE partida = :partida ORDER BY n;
