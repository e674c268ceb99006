-- What was counted in matches, for both sides.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO partida_estatisticas (partida, name, home, away)
SELECT value ->> 'partida', value ->> 'name', value ->> 'home', value ->> 'away' FROM json_each(:rows);
