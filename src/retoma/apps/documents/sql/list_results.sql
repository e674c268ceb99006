-- A page of what came of an execution, in the order in which it was handed in.
SELECT v.id, v.execucao_id, v.codigo, v.arquivo, v.sha256, v.tamanho, v.status, v.tentativas,
       v.erro_codigo, v.erro_mensagem, v.erro_stack, v.ultimo_erro_em, v.rotulo, v.confianca,
       v.justificativa, v.modelo, v.revisar, v.cortado, v.paginas, v.origem, v.pulado_motivo,
       v.concluido_em, v.job, v.rotulo_revisado, v.revisado_por, v.revisado_em
FROM resultados_classificacao v
WHERE v.execucao_id = :execution AND v.id > :after
  AND (CAST(:status AS text) IS NULL OR v.status = :status)
  AND (CAST(:label AS text) IS NULL OR coalesce(v.rotulo_revisado, v.rotulo) = :label)
  AND (CAST(:code AS text) IS NULL OR v.erro_codigo = :code)
  AND (CAST(:review AS boolean) IS NULL OR v.revisar = CAST(:review AS boolean))
ORDER BY v.id LIMIT :n;
