-- What was counted in matches, for both sides.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO partida_estatisticas (partida, name, home, away)
SELECT t.partida, t.name, t.home, t.away
FROM json_to_recordset(CAST(:rows AS json)) AS t(partida bigint, name text, home integer, away integer);
