-- What happened in matches, in its order.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO partida_eventos (partida, n, minute, added, side, kind, player, other)
SELECT value ->> 'partida', value ->> 'n', value ->> 'minute', value ->> 'added', value ->> 'side',
       value ->> 'kind', value ->> 'player', value ->> 'other'
FROM json_each(:rows);
