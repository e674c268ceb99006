-- Who holds a job is asked by the name of its runner, and whose lease is over by when it ends.
CREATE INDEX runners_name ON runners (name);

CREATE INDEX runners_lease ON runners (lease_until);
