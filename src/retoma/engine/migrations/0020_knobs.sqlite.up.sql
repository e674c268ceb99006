-- What people have set while work goes on; what nobody has set is at its default.
CREATE TABLE knobs (
    name        text PRIMARY KEY,
    value       text NOT NULL,
    changed_at  integer NOT NULL,
    changed_by  text NOT NULL
) STRICT;
