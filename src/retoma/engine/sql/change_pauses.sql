-- Every claim that has not heard of it is given nothing from now on, until it has.
UPDATE meta SET value = CAST(CAST(value AS bigint) + 1 AS text) WHERE name = 'pauses';
