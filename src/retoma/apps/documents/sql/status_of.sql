-- How an execution stands now, and by which numbers it may be moved.
SELECT v.status, v.epoca, v.geracao, v.tentativas_retry, v.max_retries, v.reprocessados,
       v.bloqueio_codigo
FROM execucoes_classificacao v WHERE v.id = :execution;
