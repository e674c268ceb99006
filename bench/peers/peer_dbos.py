"""DBOS on PostgreSQL and SQLite: workflows of ten steps, many started at once.

Sync workflows on its default pool were faster here than async ones and than other pool sizes. On SQLite
its file is put into WAL first, which doubles it.
"""

import sqlite3
from importlib.util import find_spec
from time import perf_counter

from bench.child import call
from bench.compare import Absent, Figures, Measure
from bench.places import Places

NAME = "DBOS"
HERE = "bench.peers.peer_dbos"
SIDE = "dbos"
STEPS = 10


# --- In the parent


def steps_postgres(workflows: int) -> Measure:
    def measure(places: Places) -> Figures:
        need_dbos()
        return rate(workflows, url=places.postgres(SIDE))

    return measure


def steps_sqlite(workflows: int) -> Measure:
    def measure(places: Places) -> Figures:
        need_dbos()
        path = places.file(SIDE)
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
        return rate(workflows, url=f"sqlite:///{path}")

    return measure


def rate(workflows: int, url: str) -> Figures:
    return (workflows * STEPS / call(f"{HERE}:run_workflows", url=url, workflows=workflows),)


def need_dbos() -> None:
    if find_spec("dbos") is None:
        raise Absent("not installed: dbos")


# --- In a child


def run_workflows(url: str, workflows: int) -> float:
    """Seconds from the first start to the last result."""
    from dbos import DBOS  # type: ignore[import-not-found,import-untyped,unused-ignore]

    DBOS(
        config={
            "name": "bench",
            "system_database_url": url,
            "log_level": "ERROR",
            "run_admin_server": False,
        }
    )
    step = DBOS.step()(echo)

    def ten_steps() -> None:
        for number in range(STEPS):
            step(number)

    workflow = DBOS.workflow()(ten_steps)
    DBOS.launch()
    began = perf_counter()
    handles = [DBOS.start_workflow(workflow) for _ in range(workflows)]
    for handle in handles:
        handle.get_result()
    return perf_counter() - began


def echo(number: int) -> int:
    return number
