-- What was asked under a key, and the answer.
SELECT what, hash, answer FROM answers WHERE actor = :actor AND key = :key;
