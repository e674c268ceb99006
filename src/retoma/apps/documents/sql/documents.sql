-- name: count_labels
-- How many documents of an execution have which label: what a person said of it counts.
SELECT coalesce(w.label, j.result ->> 'label'), count(*)
FROM documents d JOIN jobs j ON j.id = d.job
LEFT JOIN document_reviews w ON w.document = d.id
WHERE d.execution = :execution AND j.state = 'done'
GROUP BY coalesce(w.label, j.result ->> 'label') ORDER BY count(*) DESC, 1;

-- name: count_reviews
-- How many documents of a project the model gave which label, and which one people said it is.
SELECT w.predicted, w.label, count(*)
FROM executions e JOIN documents d ON d.execution = e.id JOIN document_reviews w ON w.document = d.id
WHERE e.project = :project
GROUP BY w.predicted, w.label ORDER BY w.predicted, count(*) DESC, w.label;

-- name: document_by_code
-- Which document of an execution has this code.
SELECT id FROM documents WHERE execution = :execution AND code = :code;

-- name: get_document
-- What a story is told of its document, and by which rules it is classified.
SELECT d.id, d.execution, d.code, d.name, d.sha256, d.size, e.rules, e.epoch,
       e.blocked_code
FROM documents d JOIN executions e ON e.id = d.execution WHERE d.id = :document;

-- name: get_result
-- What came of one document, as the document's table has it.
SELECT v.id, v.codigo, v.arquivo, v.sha256, v.tamanho, v.status, v.rotulo, v.confianca,
       v.justificativa, v.modelo, v.revisar, v.cortado, v.paginas, v.origem, v.tentativas,
       v.erro_codigo, v.erro_mensagem, v.erro_stack, v.ultimo_erro_em, v.pulado_motivo,
       v.concluido_em, v.rotulo_revisado, v.revisado_por, v.revisado_em, v.job
FROM resultados_classificacao v WHERE v.id = :document AND v.execucao_id = :execution;

-- name: get_text
-- What was read of a document, or of the one that it is a copy of.
SELECT s.value
FROM resultados_classificacao v
JOIN documents d ON d.id = v.id OR d.id = v.origem
JOIN steps s ON s.job = d.job AND s.name = 'ler' AND s.state = 'saved'
WHERE v.id = :document AND v.execucao_id = :execution
ORDER BY d.id DESC LIMIT 1;

-- name: list_results
-- A page of what came of an execution, in the order in which it was handed in.
SELECT v.id, v.codigo, v.arquivo, v.sha256, v.tamanho, v.status, v.rotulo, v.confianca,
       v.justificativa, v.modelo, v.revisar, v.cortado, v.paginas, v.origem, v.tentativas,
       v.erro_codigo, v.erro_mensagem, v.erro_stack, v.ultimo_erro_em, v.pulado_motivo,
       v.concluido_em, v.rotulo_revisado, v.revisado_por, v.revisado_em, v.job
FROM resultados_classificacao v
WHERE v.execucao_id = :execution AND v.id > :after
  AND (CAST(:status AS text) IS NULL OR v.status = :status)
  AND (CAST(:label AS text) IS NULL OR coalesce(v.rotulo_revisado, v.rotulo) = :label)
  AND (CAST(:code AS text) IS NULL OR v.erro_codigo = :code)
  AND (CAST(:review AS boolean) IS NULL OR v.revisar = CAST(:review AS boolean))
ORDER BY v.id LIMIT :n;

-- name: list_reviews
-- A page of what people said of the labels of a project, in the order of its documents.
SELECT d.id, d.execution, d.code, d.name, d.sha256, w.predicted, w.label, w.reviewer, w.at
FROM executions e JOIN documents d ON d.execution = e.id JOIN document_reviews w ON w.document = d.id
WHERE e.project = :project AND d.id > :after
ORDER BY d.id LIMIT :n;

-- name: review_document
-- What a person says the label of a document is; the last word counts, and what the model said stays beside it.
INSERT INTO document_reviews (document, predicted, label, reviewer, at)
SELECT v.id, v.rotulo, :label, :actor, (SELECT clock())
FROM resultados_classificacao v
WHERE v.id = :document AND v.execucao_id = :execution AND v.status = 'CONCLUIDO'
ON CONFLICT (document) DO UPDATE SET predicted = excluded.predicted, label = excluded.label,
    reviewer = excluded.reviewer, at = excluded.at
RETURNING predicted;
