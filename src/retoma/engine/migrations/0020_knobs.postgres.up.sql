-- What people have set while work goes on; what nobody has set is at its default.
CREATE TABLE knobs (
    name        text COLLATE "C" PRIMARY KEY,
    value       json NOT NULL,
    changed_at  timestamptz NOT NULL,
    changed_by  text COLLATE "C" NOT NULL
);
