-- What a quote asks for, and what was known of it before: when it came to us, or to moved code since.
SELECT q.description, q.kind, q.was,
       (SELECT s.value FROM steps s WHERE s.job = q.job AND s.key LIKE 'face/%/claude_payload_json'
        ORDER BY s.key DESC LIMIT 1),
       (SELECT s.value FROM steps s WHERE s.job = q.job AND s.key LIKE 'face/%/google_shopping_response_json'
        ORDER BY s.key DESC LIMIT 1),
       (SELECT s.value -> 'resume_data' FROM steps s
        WHERE s.job = q.job AND s.key LIKE 'face/%' AND s.key NOT LIKE 'face/%/%'
        ORDER BY s.key DESC LIMIT 1)
FROM quotes q WHERE q.id = :quote;
