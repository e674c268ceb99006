-- What was read of a document, or of the one that it is a copy of.
SELECT s.value
FROM resultados_classificacao v
JOIN documents d ON d.id = v.id OR d.id = v.origem
JOIN steps s ON s.job = d.job AND s.name = 'ler' AND s.state = 'saved'
WHERE v.id = :document AND v.execucao_id = :execution
ORDER BY d.id DESC LIMIT 1;
