"""The floor of a latency: two processes, two commits and a bell between them, and nothing else.

One commits a row and rings; the other hears it, commits that it has the row, and takes the time. Below that
nobody comes who must not lose a job, on this disk.
"""

import socket
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.child import beside, call
from bench.compare import Figures, Measure
from bench.latency import Pace, figures_of, start_slowly, submitting_blocking

HERE = "bench.two_commits"
SIDE = "two_commits"
TABLE = "CREATE TABLE IF NOT EXISTS rows (id integer PRIMARY KEY, sent bigint, taken bigint)"
BELL = ".bell"


# --- In the parent


def on_postgres(pace: Pace) -> Measure:
    return lambda places: _measured("postgres", places.postgres(SIDE), pace)


def on_sqlite(pace: Pace) -> Measure:
    return lambda places: _measured("sqlite", places.file(SIDE), pace)


def _measured(make: str, at: str, pace: Pace) -> Figures:
    with beside(f"{HERE}:take_from_{make}", at=at, expected=pace.submits) as taker:
        start_slowly()
        call(f"{HERE}:give_to_{make}", at=at, **asdict(pace))
        return figures_of(taker.answer(), pace)


# --- In a child


def give_to_postgres(at: str, **pace: Any) -> None:
    import psycopg

    with psycopg.connect(at, autocommit=True) as connection:

        def give(sent: int) -> None:
            with connection.transaction():
                connection.execute(
                    "INSERT INTO rows SELECT coalesce(max(id), 0) + 1, %s FROM rows", [sent]
                )
                connection.execute("NOTIFY bell")

        submitting_blocking(Pace(**pace), give)


def take_from_postgres(at: str, expected: int) -> list[int]:
    import psycopg

    waits: list[int] = []
    with (
        psycopg.connect(at, autocommit=True) as connection,
        psycopg.connect(at, autocommit=True) as ear,
    ):
        connection.execute(TABLE)
        ear.execute("LISTEN bell")
        for _ in ear.notifies():
            found = connection.execute(
                "UPDATE rows SET taken = 1 WHERE taken IS NULL RETURNING sent"
            ).fetchall()
            waits += [time.time_ns() - sent for (sent,) in found]
            if len(waits) >= expected:
                return waits
    raise AssertionError("the bell has ended")


def give_to_sqlite(at: str, **pace: Any) -> None:
    connection = _opened(at)
    bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    bell.connect(at + BELL)

    def give(sent: int) -> None:
        connection.execute("INSERT INTO rows(sent) VALUES (?)", (sent,))
        bell.send(b"!")

    submitting_blocking(Pace(**pace), give)


def take_from_sqlite(at: str, expected: int) -> list[int]:
    waits: list[int] = []
    connection = _opened(at)
    bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    Path(at + BELL).unlink(missing_ok=True)
    bell.bind(at + BELL)
    while len(waits) < expected:
        bell.recv(1)
        found = connection.execute(
            "UPDATE rows SET taken = 1 WHERE taken IS NULL RETURNING sent"
        ).fetchall()
        waits += [time.time_ns() - sent for (sent,) in found]
    return waits


def _opened(at: str) -> Any:
    import apsw

    connection = apsw.Connection(at)
    connection.set_busy_timeout(5_000)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(TABLE)
    return connection
