-- What came of one document, as the document's table has it.
SELECT v.id, v.execucao_id, v.codigo, v.arquivo, v.sha256, v.tamanho, v.status, v.tentativas,
       v.erro_codigo, v.erro_mensagem, v.erro_stack, v.ultimo_erro_em, v.rotulo, v.confianca,
       v.justificativa, v.modelo, v.revisar, v.cortado, v.paginas, v.origem, v.pulado_motivo,
       v.concluido_em, v.job, v.rotulo_revisado, v.revisado_por, v.revisado_em
FROM resultados_classificacao v WHERE v.id = :document AND v.execucao_id = :execution;
