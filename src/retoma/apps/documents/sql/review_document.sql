-- What a person says the label of a document is; the last word counts, and what the model said stays beside it.
INSERT INTO document_reviews (document, predicted, label, reviewer, at)
SELECT v.id, v.rotulo, :label, :actor, (SELECT clock())
FROM resultados_classificacao v
WHERE v.id = :document AND v.execucao_id = :execution AND v.status = 'CONCLUIDO'
ON CONFLICT (document) DO UPDATE SET predicted = excluded.predicted, label = excluded.label,
    reviewer = excluded.reviewer, at = excluded.at
RETURNING predicted;
