"""A small queue of real processes over one SQLite file, with a fence or without: the board is tried on it."""

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.zombies.judge import Seen
from bench.zombies.ledger import GaveUp, Handler, handler
from bench.zombies.scenarios import ONE, RETRIED, STEPS, TWO, Scenario

HERE = "tests.zombies.fakes"
LOOK = 0.05  # seconds
SCHEMA = """CREATE TABLE jobs (
    id INTEGER PRIMARY KEY, scenario, kind, state DEFAULT 'waiting', holder,
    claim DEFAULT 0, value, steps DEFAULT '{}')"""
CLAIM = """UPDATE jobs SET state = 'running', holder = ?, claim = claim + 1
            WHERE state = 'waiting' RETURNING id, claim, scenario, kind"""
RUNS = "CREATE TABLE runs (worker, job)"
FENCE = " AND claim = :claim AND state = 'running'"
# What a worker does once more if it is asked to betray the ledger: the planted double.
TWICE = "result_during"


class FakeQueue:
    """A `Side`. `fence` is added to every write about a claimed job; without it anybody's write counts."""

    steps = True
    results = True

    def __init__(self, path: Path, *, fenced: bool, twice: bool = False) -> None:
        self._path = path
        self._told = {"fence": FENCE if fenced else "", "twice": twice}
        with opened(path) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(SCHEMA)
            connection.execute(RUNS)

    def close(self) -> None:
        """Nothing is kept open."""

    def worker(self) -> tuple[str, dict[str, Any]]:
        return f"{HERE}:work", {"path": str(self._path), **self._told}

    def submit(self, scenario: Scenario) -> Any:
        row = (scenario.name, scenario.kind)
        with opened(self._path) as connection:
            done = connection.execute("INSERT INTO jobs (scenario, kind) VALUES (?, ?)", row)
        return done.lastrowid

    def look(self, job: Any) -> Seen:
        with opened(self._path) as connection:
            [(state, value, steps, claim)] = connection.execute(
                "SELECT state, value, steps, claim FROM jobs WHERE id = ?", [job]
            )
        return Seen(
            state,
            None if value is None else json.loads(value),
            tuple(sorted(json.loads(steps).items())),
            str(claim),
        )

    def cancel(self, job: Any) -> None:
        with opened(self._path) as connection:
            connection.execute("UPDATE jobs SET state = 'cancelled' WHERE id = ?", [job])

    def lose(self, worker: str, folder: Path) -> None:
        lost = "UPDATE jobs SET state = 'waiting' WHERE holder = ? AND state = 'running'"
        with opened(self._path) as connection:
            connection.execute(lost, [worker])

    def at_rest(self, worker: str) -> bool:
        """Whether it has written what came of everything that it claimed."""
        with opened(self._path) as connection:
            [(runs,)] = connection.execute(
                "SELECT count(*) FROM runs WHERE worker = ?", [worker]
            )
        return bool(runs == 0)

    def in_transaction(self) -> bool:
        try:
            with opened(self._path, patience=0) as connection:
                connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        return False


@contextlib.contextmanager
def opened(path: Path, patience: float = 20.0) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, timeout=patience)
    try:
        with connection:
            yield connection
    finally:
        connection.close()


# --- In a child


def work(path: str, fence: str, folder: str, worker: str, *, twice: bool) -> None:
    asyncio.run(
        work_for_ever(Worker(Path(path), fence, handler(folder, worker), twice), worker)
    )


class Worker:
    """Runs what it has claimed, and writes what came out."""

    def __init__(self, path: Path, fence: str, does: Handler, twice: bool) -> None:
        self._path = path
        self._fence = fence
        self._does = does
        self._twice = twice

    def claim(self, worker: str) -> list[tuple[int, int, str, str]]:
        with opened(self._path) as connection:
            claimed = list(connection.execute(CLAIM, [worker]))
            runs = [(worker, job) for job, *_ in claimed]
            connection.executemany("INSERT INTO runs VALUES (?, ?)", runs)
        return claimed

    async def run(self, worker: str, job: int, *claimed: Any) -> None:
        try:
            await self._run(job, *claimed)
        finally:
            with opened(self._path) as connection:
                over = "DELETE FROM runs WHERE worker = ? AND job = ?"
                connection.execute(over, [worker, job])

    async def _run(self, job: int, claim: int, scenario: str, kind: str) -> None:
        held = {"id": job, "claim": claim}
        try:
            if kind == STEPS:
                value: Any = [await self._step(held, scenario, part) for part in (ONE, TWO)]
            else:
                value = await self._does.run(scenario)
            if self._twice and scenario == TWICE:
                await self._does.run(scenario)
        except GaveUp:
            state = "waiting" if kind == RETRIED else "failed"
            self._write("state = :state", held | {"state": state})
        except LookupError:
            return  # refused: somebody else has it
        else:
            self._write("state = 'done', value = :value", held | {"value": json.dumps(value)})

    async def _step(self, held: dict[str, Any], scenario: str, part: str) -> str:
        with opened(self._path) as connection:
            [(known,)] = connection.execute("SELECT steps FROM jobs WHERE id = :id", held)
        if part in json.loads(known):
            return str(json.loads(known)[part])
        value = await self._does.part(scenario, part)
        kept = "steps = json_set(steps, :place, :value)"
        if not self._write(kept, held | {"place": f"$.{part}", "value": value}):
            raise LookupError
        return value

    def _write(self, changes: str, told: dict[str, Any]) -> bool:
        with opened(self._path) as connection:
            statement = f"UPDATE jobs SET {changes} WHERE id = :id{self._fence}"  # noqa: S608
            return connection.execute(statement, told).rowcount == 1


async def work_for_ever(worker: Worker, name: str) -> None:
    tasks = []
    while True:
        tasks += [asyncio.create_task(worker.run(name, *row)) for row in worker.claim(name)]
        await asyncio.sleep(LOOK)
