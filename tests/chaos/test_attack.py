"""Every write of a runner, tried by those who have no right to it: nothing changes, at all."""

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from retoma.db import Database, Transaction, adhoc
from retoma.engine import store
from retoma.engine.ports import Clock, Process
from retoma.engine.rules import settlement
from retoma.engine.rules.errors import LeaseLost
from retoma.engine.rules.job import Held, StepId
from retoma.engine.rules.settlement import Settlement
from retoma.engine.rules.states import DeadReason, ParkReason, State, StepState
from retoma.engine.store import Boot, Evidence, Spot
from retoma.engine.writing.group_writer import Writer
from tests.chaos.world import World

LEASE = 60.0
STEP = StepId("ask")
ENDS: dict[str, Settlement] = {
    "done": settlement.done('"stolen"'),
    "skipped": settlement.skipped("not needed"),
    "failed": settlement.failed(0.0, "transient", {"message": "no"}),
    "buried": settlement.buried(DeadReason.PERMANENT, "permanent", {"message": "no"}),
    "snoozed": settlement.snoozed(1.0),
    "parked": settlement.parked("why", ParkReason.OPERATOR),
    "released": settlement.RELEASED,
    "canceled": settlement.CANCELED,
}
TABLES = ("jobs", "events", "steps", "evidence", "job_evidence", "tallies", "counts", "runners")

Write = Callable[[Transaction, str, Held], Any]


def saving(state: StepState) -> Write:
    fields = store.step_fields(STEP, '"stolen"', state)
    return lambda tx, boot, held: tx.finish(store.saves(boot, [(held, STEP, fields)]))[0]


def settling(end: Settlement) -> Write:
    return lambda tx, boot, held: tx.finish(store.settles(boot, [store.settle_row(held, end)]))[
        0
    ]


def reporting(tx: Transaction, boot: str, held: Held) -> Any:
    return tx.finish(store.reports(boot, [store.report_row(held, 0.9, "stolen")]))[0]


def attaching(tx: Transaction, boot: str, held: Held) -> Any:
    page = Evidence("page.html", "text/html", b"stolen")
    return store.attach(tx, boot, held, store.pack(page))


# Everything a runner can send about a job; each gives nothing where it is refused.
WRITES: dict[str, Write] = {
    **{f"step {state}": saving(state) for state in StepState},
    "progress": reporting,
    "evidence": attaching,
    **{f"settle {name}": settling(end) for name, end in ENDS.items()},
}
# And about itself.
OWN: dict[str, Write] = {
    "beat": lambda tx, boot, _: store.beat_runner(tx, boot, LEASE, reconnected=False),
    "claim": lambda tx, boot, _: (
        store.claim_jobs(
            tx, boot, [Spot("chain")], ["chain@1"], slots=9, suspects=9, promote=True
        ).claims
    ),
    "leave": lambda tx, boot, _: store.move_runner(tx, boot, "leaving", actor=boot),
    "lose others": lambda tx, boot, _: store.lose_runners(tx, boot, LEASE),
}


@dataclass(frozen=True, slots=True)
class Scene:
    """A job held by one living runner, and the ways to have no right to it."""

    database: Database
    held: Held  # what its rightful holder may write under
    attackers: dict[str, tuple[str, Held]]  # boot and epoch of each


async def prepared(world: World) -> Scene:
    """Claimed by a runner that was lost, then by another that lives; a third lives beside it."""
    database = await world.app.database()
    await world.submit_all("chain", [{}])
    for name in ("dead", "holder", "neighbour", "left"):
        await start(database, name)
    old = await claim(database, "dead")
    await write(database, lambda tx: store.move_runner(tx, "dead", "lost", actor="test"))
    await write(database, lambda tx: store.move_runner(tx, "left", "gone", actor="test"))
    await write(database, lambda tx: store.take_back(tx, "neighbour"))
    held = await claim(database, "holder")
    await world.submit_all("chain", [{}])  # something a dead boot would like to claim
    await write(database, store.fold_tallies)
    return Scene(
        database,
        held,
        {
            "a dead boot with its old epoch": ("dead", old),
            "a dead boot with the epoch of today": ("dead", held),
            "a boot that has left": ("left", held),
            "the holder with a stale epoch": ("holder", old),
            "the holder with an epoch to come": ("holder", Held(held.job, held.epoch + 1)),
            "a living runner that does not hold it": ("neighbour", held),
            "a boot the database never knew": ("from before the restore", held),
        },
    )


async def test_no_write_without_the_right_changes_anything(new_world):
    """E3 E4: every write by everyone without the job: zero rows, and the same database."""
    async with new_world() as world:
        scene = await prepared(world)
        before = await everything(scene.database)

        for who, (boot_id, held) in scene.attackers.items():
            for name, attack in WRITES.items():
                answer = await attempted(scene.database, attack, boot_id, held)
                assert not answer, f"{name} by {who} was accepted: {answer}"
        for who in ("dead", "left", "from before the restore"):
            for name, attack in OWN.items():
                answer = await attempted(scene.database, attack, who, scene.held)
                assert not answer, f"{name} by the boot {who!r} was accepted: {answer}"

        assert before == await everything(scene.database)


@pytest.mark.parametrize("name", WRITES)
async def test_the_same_write_by_its_holder_is_accepted(new_world, name):
    """E3, not in vain: each of these writes does change the database in the right hands."""
    async with new_world() as world:
        scene = await prepared(world)
        before = await everything(scene.database)

        answer = await attempted(scene.database, WRITES[name], "holder", scene.held)

        assert answer
        assert before != await everything(scene.database)


async def test_a_group_tells_the_stale_from_the_rightful(new_world):
    """E3: one runner holds a zombie coroutine and the new attempt of one job, in one group."""
    async with new_world() as world:
        scene = await prepared(world)
        writer = Writer(scene.database, "holder", Clock())
        stale = Held(scene.held.job, scene.held.epoch - 1)

        settled: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        writer.settle(stale, "chain", ENDS["done"], settled)
        answers = await asyncio.gather(
            writer.save(stale, "chain", STEP, '"old"'),
            writer.save(scene.held, "chain", STEP, '"new"'),
            writer.report(stale, "chain", 0.1, None),
            settled,
            return_exceptions=True,
        )
        await writer.flush()

        refused = [isinstance(answer, LeaseLost) for answer in answers]
        assert [True, False, True, True] == refused
        assert 3 == await world.app.runners.refused_writes()
        assert ['"new"'] == [step.value for step in await world.app.steps(scene.held.job)]
        await world.verdict(finished=False)


@pytest.mark.parametrize("end", ["failed", "buried", "released", "snoozed", "parked"])
async def test_an_end_that_meets_a_cancel_is_canceled_and_no_failure(new_world, end):
    """E13 E9: the story failed while its cancel was on the way; no try was spent on it."""
    async with new_world() as world:
        scene = await prepared(world)
        await world.app.cancel(scene.held.job)

        await attempted(scene.database, WRITES[f"settle {end}"], "holder", scene.held)

        job = await world.app.get(scene.held.job)
        assert (State.CANCELED, 0) == (job.state, job.failures)
        await world.verdict(finished=False)


async def test_a_boot_from_after_the_backup_can_write_nothing(new_world, tmp_path):
    """E4: restored from before its boot; another holds the same job under the same epoch."""
    async with new_world() as world:
        await world.submit_all("chain", [{}])
        backup = backup_of(world.url, tmp_path)
        await world.app.close()
        backup.take()
        database = await world.app.database()
        await start(database, "late")
        held = await claim(database, "late")
        await world.app.close()

        backup.restore()
        database = await world.app.database()
        await start(database, "new")
        assert held == await claim(database, "new")
        before = await everything(database)
        for name, attack in (WRITES | OWN).items():
            assert not await attempted(database, attack, "late", held), name

        assert before == await everything(database)


class FileBackup:
    """SQLite: the file, while nobody has it open."""

    def __init__(self, url: str, folder: Path) -> None:
        self._file = Path(url.removeprefix("sqlite:///"))
        self._copy = folder / "backup.db"

    def take(self) -> None:
        shutil.copy(self._file, self._copy)

    def restore(self) -> None:
        shutil.copy(self._copy, self._file)


class RowBackup:
    """PostgreSQL: the rows of every table, put back as pg_restore would."""

    def __init__(self, url: str) -> None:
        self._url = url

    def take(self) -> None:
        copies = (f"CREATE TABLE backup.{name} AS TABLE retoma.{name}" for name in TABLES)
        self._run("CREATE SCHEMA backup", *copies)

    def restore(self) -> None:
        self._run(
            f"TRUNCATE {', '.join(f'retoma.{name}' for name in TABLES)}",
            *(f"INSERT INTO retoma.{name} SELECT * FROM backup.{name}" for name in TABLES),  # noqa: S608
            "DROP SCHEMA backup CASCADE",
        )

    def _run(self, *commands: str) -> None:
        with psycopg.connect(self._url) as connection:
            for command in commands:
                connection.execute(command)


def backup_of(url: str, folder: Path) -> FileBackup | RowBackup:
    return FileBackup(url, folder) if url.startswith("sqlite:") else RowBackup(url)


async def start(database: Database, name: str) -> None:
    await write(database, lambda tx: store.boot_runner(tx, boot(name), LEASE))


async def attempted(database: Database, attack: Write, boot_id: str, held: Held) -> Any:
    return await write(database, lambda tx: attack(tx, boot_id, held))


def boot(name: str) -> Boot:
    return Boot(
        id=name, name=name, process=Process.this(), version="", slots=9, knows=["chain@1"]
    )


async def claim(database: Database, who: str) -> Held:
    found = await write(
        database,
        lambda tx: store.claim_jobs(
            tx, who, [Spot("chain")], ["chain@1"], slots=1, suspects=1, promote=True
        ),
    )
    [claimed] = found.claims
    held: Held = claimed.held
    return held


async def write(database: Database, fn: Callable[[Transaction], Any]) -> Any:
    return await database.write(fn, verb="attack")


async def everything(database: Database) -> dict[str, list[Any]]:
    """Every row of every table that a runner writes to."""

    def read(tx: Transaction) -> dict[str, list[Any]]:
        return {table: sorted(map(repr, tx.all(ROWS[table]))) for table in TABLES}

    return await database.read(read)


ROWS = {table: adhoc(f"SELECT * FROM {table}") for table in TABLES}  # noqa: S608
