"""Whether a runner is as quick after many jobs as after few, also where somebody holds an old snapshot.

A backup or a forgotten session keeps PostgreSQL from clearing away what was claimed and settled, and
SQLite's log from being taken up. By the database's own clock, from our own events.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from bench import ours
from bench.child import call
from bench.compare import Figures, Measure
from bench.ours import Address
from bench.places import Places
from bench.span import MICROSECONDS

HERE = "bench.sustained"
LIMIT = 1_200.0  # seconds
TENTH = 10

ENDS = "SELECT at FROM events WHERE type = 'done' ORDER BY at"


# --- In the parent


def drain(at: Address, jobs: int, slots: int, *, old_snapshot: bool = False) -> Measure:
    """The last tenth's pace by the first tenth's, and jobs a second over all."""

    def measure(places: Places) -> Figures:
        url = at(places)
        call(f"{ours.HERE}:fill", limit=LIMIT, url=url, kind="noop", jobs=jobs)
        with held_open(url) if old_snapshot else contextlib.nullcontext():
            call(f"{ours.HERE}:work", limit=LIMIT, url=url, slots=slots)
            first, last, whole = call(f"{HERE}:tenths", limit=LIMIT, url=url)
        return first / last, jobs / whole

    return measure


@contextlib.contextmanager
def held_open(url: str) -> Iterator[None]:
    """A reader that began before the work and ends after it."""
    if url.startswith("sqlite:"):
        import apsw

        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute("BEGIN; SELECT count(*) FROM batches").fetchall()
        yield
        connection.close()
    else:
        import psycopg

        with psycopg.connect(url, options="-c search_path=retoma") as reader:
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT count(*) FROM batches").fetchall()
            yield
            reader.rollback()


# --- In a child


def tenths(url: str) -> list[float]:
    """Seconds of the first tenth, of the last, and of the whole."""
    ends = [*(on_sqlite(url) if url.startswith("sqlite:") else on_postgres(url))]
    tenth = len(ends) // TENTH
    return [ends[tenth] - ends[0], ends[-1] - ends[-1 - tenth], ends[-1] - ends[0]]


def on_sqlite(url: str) -> Iterator[float]:
    import apsw

    rows: Any = apsw.Connection(url.removeprefix("sqlite:///")).execute(ENDS)
    return (at / MICROSECONDS for (at,) in rows)


def on_postgres(url: str) -> Iterator[float]:
    import psycopg

    with psycopg.connect(url, options="-c search_path=retoma") as connection:
        rows = connection.execute(ENDS).fetchall()
    return (at.timestamp() for (at,) in rows)
