-- No people, keys, links or sessions, and no secrets.
DROP TABLE secrets;

DELETE FROM meta WHERE name = 'secret_key';

DROP TABLE sign_in_sessions;

DROP TABLE sign_in_links;

DROP TABLE api_keys;

DROP TABLE people;
