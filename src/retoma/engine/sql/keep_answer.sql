-- Keep the answer under its key.
UPDATE answers SET answer = :answer WHERE actor = :actor AND key = :key;
