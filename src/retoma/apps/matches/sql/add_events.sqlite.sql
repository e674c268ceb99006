-- What happened in a match, in its order.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO partida_eventos (partida, n, minute, added, side, kind, player, other)
SELECT CAST(:partida AS bigint), value ->> 'n', value ->> 'minute', value ->> 'added', value ->> 'side',
       value ->> 'kind', value ->> 'player', value ->> 'other'
FROM json_each(:rows);
