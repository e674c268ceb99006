"""What the board asks of a PostgreSQL server itself."""

import psycopg

IDLE = (
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
    " AND state LIKE 'idle in transaction%%'"
    " AND state_change < clock_timestamp() - interval '50 milliseconds'"
)


def is_idle_in_transaction(url: str) -> bool:
    """Whether a session of this database sits in a transaction; one that was stopped there holds its locks."""
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(IDLE).fetchone() is not None
