-- Somebody is signed in; of the cookie only the hash.
INSERT INTO sign_in_sessions (id, person, role, hash, agent, created_at, seen_at, expires_at)
VALUES (:id, :person, :role, :hash, :agent, (SELECT clock()), (SELECT clock()),
        (SELECT clock_in(:life)));
