"""What many runner processes on one PostgreSQL cost it and themselves: `--only machines`.

A job is counted whole: submitted in bulk, claimed, done. Seconds of processor for 1,000 jobs are also
the cores that 1,000 jobs a second keep busy. The server's are read from /proc: it must be on this
machine, and nobody else may use it meanwhile.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import ours
from bench.child import call, together
from bench.compare import Absent, Comparison, Figures, Measure, Row
from bench.places import Places
from bench.span import seconds_of

HERE = "bench.machines"
PROCESSES = (1, 2, 4)
THOUSAND = 1_000
TICKS = 100  # a second, in /proc: the same on every Linux since long ago
SETTLED = 1.5  # seconds until sessions have told the statistics
COST = (  # what is measured beside the rate, and its unit for one thing
    ("runner", "CPU s/1,000 {}s"),
    ("server", "CPU s/1,000 {}s"),
    ("wal", "B/{}"),
    ("commits", "/1,000 {}s"),
)


# --- What is compared


def comparisons(jobs: int, stepped: int, slots: int, rounds: int) -> list[Comparison]:
    """One, two and four processes; then what one more step costs."""
    many = [
        Comparison(
            rows=rows(f"machines_{n}", "job"),
            ours=drain("noop", jobs, n, slots),
            rounds=rounds,
        )
        for n in PROCESSES
    ]
    step = Comparison(
        rows=rows("machines_step", "step"),
        ours=drain("ten_steps", stepped, 2, slots),
        rounds=rounds,
    )
    return [*many, step]


def rows(name: str, thing: str) -> tuple[Row, ...]:
    costs = (Row(f"{name}_{cost}", unit.format(thing)) for cost, unit in COST)
    return (Row(name, f"{thing}s/s"), *costs)


# --- In the parent


def drain(kind: str, jobs: int, processes: int, slots: int) -> Measure:
    """Things a second; then for 1,000 of them the processors' seconds and the commits, and their WAL."""
    things = jobs * (ours.STEPS if kind == "ten_steps" else 1)

    def measure(places: Places) -> Figures:
        url = ours.on_postgres(places)
        call(f"{ours.HERE}:fill", url=url, kind=kind, jobs=0)
        before = spent(url)
        call(f"{ours.HERE}:fill", url=url, kind=kind, jobs=jobs)
        seconds = together(processes, f"{HERE}:work", url=url, slots=slots)
        after = spent(url)
        each = THOUSAND / things
        return (
            things / seconds_of(url, jobs),
            sum(seconds) * each,
            (after.cpu - before.cpu) * each,
            (after.wal - before.wal) / things,
            (after.commits - before.commits) * each,
        )

    return measure


@dataclass(frozen=True, slots=True)
class Spent:
    """What a server has used since it was started."""

    cpu: float  # seconds of all its processes, also of those that ended
    wal: int  # bytes
    commits: int  # of the database that is measured


def spent(url: str) -> Spent:
    time.sleep(SETTLED)
    answer = call(f"{HERE}:ask_server", url=url)
    return Spent(server_seconds(answer["server"]), answer["wal"], answer["commits"])


def server_seconds(server: int | None) -> float:
    """Of its own process, of its children, and of those it has buried."""
    if server is None:
        raise Absent("the server is on another machine")
    own = stat(Path(f"/proc/{server}/stat"))
    ticks = sum(int(own[field]) for field in (*USED, *USED_BY_THE_DEAD))
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat(path)
        except OSError:
            continue  # it has ended: the server has counted it
        if int(fields[PARENT]) == server:
            ticks += sum(int(fields[field]) for field in USED)
    return ticks / TICKS


# Places in /proc/…/stat after the name, which may hold anything.
PARENT = 1
USED = (11, 12)
USED_BY_THE_DEAD = (13, 14)


def stat(path: Path) -> list[str]:
    return path.read_text().rpartition(")")[2].split()


# --- In a child


def work(url: str, slots: int) -> float:
    """Seconds of processor of a runner that works until nothing waits."""
    began = time.process_time()
    ours.work(url, slots)
    return time.process_time() - began


def ask_server(url: str) -> dict[str, Any]:
    import psycopg

    # This session is in the figures too: it asks three things and ends.
    with psycopg.connect(url, autocommit=True) as connection:
        [[backend, wal, commits]] = connection.execute(
            "SELECT pg_backend_pid(), pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0'),"
            " xact_commit FROM pg_stat_database WHERE datname = current_database()"
        ).fetchall()
        return {"server": parent_of(backend), "wal": int(wal), "commits": int(commits)}


def parent_of(backend: int) -> int | None:
    """The server itself, while a session of it is there to ask."""
    path = Path(f"/proc/{backend}/stat")
    if not path.exists() or not path.with_name("comm").read_text().startswith("postgres"):
        return None
    return int(stat(path)[PARENT])
