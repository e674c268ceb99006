-- Another key seals from now on.
UPDATE meta SET value = :key WHERE name = 'secret_key';
