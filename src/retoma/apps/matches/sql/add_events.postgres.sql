-- What happened in matches, in its order.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO partida_eventos (partida, n, minute, added, side, kind, player, other)
SELECT t.partida, t.n, t.minute, t.added, t.side, t.kind, t.player, t.other
FROM json_to_recordset(CAST(:rows AS json))
    AS t(partida bigint, n integer, minute integer, added integer, side text, kind text, player text, other text);
