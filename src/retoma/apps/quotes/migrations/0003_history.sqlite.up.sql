-- Quotes that were taken over as history have no job whose state an index knows.
CREATE INDEX quotes_history ON quotes ((was ->> 'status'), id) WHERE was IS NOT NULL;
