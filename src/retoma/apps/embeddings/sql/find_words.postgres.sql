-- The chunks of a collection that say most of these words, by their rows in the index: a rare word counts more.
-- Twin: PostgreSQL ranks without regard to how rare a word is, so that is added up here.
WITH found AS (
    SELECT w.rowid, t.nth
    FROM json_array_elements_text(CAST(:terms AS json)) WITH ORDINALITY AS t(term, nth)
    JOIN embeddings_words w ON w.collection = :collection AND w.words @@ CAST(t.term AS tsquery)
    WHERE CAST(:documents AS text) IS NULL OR w.rowid / 32768 IN (
        SELECT CAST(json_array_elements_text(CAST(:documents AS json)) AS bigint))
), weights AS (
    SELECT nth, ln(1 + (SELECT count(DISTINCT rowid) FROM found) / (0.5 + count(*))) AS weight
    FROM found GROUP BY nth
)
SELECT f.rowid FROM found f JOIN weights g ON g.nth = f.nth
GROUP BY f.rowid ORDER BY sum(g.weight) DESC, f.rowid LIMIT :n;
