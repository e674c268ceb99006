-- A stored match is one no longer. Zero rows: somebody was quicker.
DELETE FROM partidas WHERE id = :partida AND revision = :revision RETURNING id;
