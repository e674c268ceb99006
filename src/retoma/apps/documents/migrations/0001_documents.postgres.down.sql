-- What was asked for and what came of it stays, as plain tables of the document's columns.
-- What documents say goes: it has no other place.
DELETE FROM breakers WHERE name = 'documents.openrouter';

DELETE FROM rates WHERE key = 'documents.openrouter';

DROP TABLE IF EXISTS resultados_classificacao_kept;

CREATE TABLE resultados_classificacao_kept AS SELECT * FROM resultados_classificacao;

DROP TABLE IF EXISTS execucoes_classificacao_kept;

CREATE TABLE execucoes_classificacao_kept AS SELECT * FROM execucoes_classificacao;

DROP VIEW execucoes_classificacao;

DROP VIEW resultados_classificacao;

DROP FUNCTION documents_refuse_write();

DROP TABLE IF EXISTS document_reviews_kept;

CREATE TABLE document_reviews_kept AS SELECT * FROM document_reviews;

DROP TABLE document_reviews;

DROP TABLE document_askings;

DROP TABLE document_pieces;

DROP TABLE document_contents;

DROP TABLE documents;

DROP TABLE executions;

DROP TABLE document_projects;
