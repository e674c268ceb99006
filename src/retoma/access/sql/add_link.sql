-- A sign-in link; of its token only the hash.
INSERT INTO sign_in_links (id, person, role, hash, created_at, expires_at)
VALUES (:id, :person, :role, :hash, (SELECT clock()), (SELECT clock_in(:life)));
