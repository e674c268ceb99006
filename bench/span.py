"""From the first claim to the last end, by the database's own clock and from our own events.

So neither the start of a process nor its stop is in the figure, for us as for the peers.
"""

from typing import Any

from bench.child import call

HERE = "bench.span"
MICROSECONDS = 1_000_000

QUESTION = """SELECT max(at) - min(at) FROM events WHERE type IN ('claimed', 'done')"""
COUNT = """SELECT count(*) FROM events WHERE type = 'done'"""


def seconds_of(url: str, jobs: int) -> float:
    """Seconds in which all `jobs` were claimed and done; fails if they were not."""
    name = "on_sqlite" if url.startswith("sqlite:") else "on_postgres"
    answer = call(f"{HERE}:{name}", url=url, jobs=jobs)
    return float(answer)


# --- In a child


def on_postgres(url: str, jobs: int) -> float:
    import psycopg

    with psycopg.connect(url, options="-c search_path=retoma") as connection:
        [[done]] = connection.execute(COUNT).fetchall()
        [[span]] = connection.execute(QUESTION).fetchall()
    check(done, jobs)
    seconds: float = span.total_seconds()
    return seconds


def on_sqlite(url: str, jobs: int) -> float:
    import apsw

    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    done: Any = connection.execute(COUNT).get
    span: Any = connection.execute(QUESTION).get
    check(done, jobs)
    return float(span) / MICROSECONDS


def check(done: int, jobs: int) -> None:
    if done != jobs:
        raise AssertionError(f"{done} of {jobs} jobs are done")
