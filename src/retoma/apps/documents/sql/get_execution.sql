-- One execution, as the document's table has it.
SELECT v.id, v.projeto_id, v.nome, v.status, v.total, v.ultimo_heartbeat, v.ultimo_codigo_processado,
       v.tentativas_retry, v.max_retries, v.epoca, v.geracao, v.reprocessados, v.travado_em, v.erro_em,
       v.cancelada_em, v.cancelada_por, v.criado_por, v.criado_em, v.bloqueio_codigo,
       v.bloqueio_mensagem, v.bloqueada_em
FROM execucoes_classificacao v WHERE v.id = :execution;
