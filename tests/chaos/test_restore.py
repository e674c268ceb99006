"""The drill: a backup while runners work, the database thrown away under them, and all begun again (E4, F20).

What was started elsewhere after the backup is nothing the restored database knows of. It is found again
under its key, which is the same; and whoever worked on it for the database of before writes nothing.
"""

import asyncio
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from retoma import backup
from retoma.backup import Installation
from retoma.db.migrations import ENGINE
from retoma.engine.ports import Ids
from retoma.engine.rules.states import State
from retoma.engine.store import Reopened
from tests import copying
from tests.chaos import history, jobs
from tests.chaos.history import History
from tests.chaos.test_remote import open_service, read_log
from tests.chaos.world import World
from tests.clock import TestClock
from tests.conftest import database_address
from tests.engine.aids import rows


class Sqlite:
    """A file; its address stays."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "house.db"
        self.url = self.fresh = f"sqlite:///{self.path}"

    def throw_away(self) -> None:
        for path in self.path.parent.glob(f"{self.path.name}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def put_in_place(self) -> None:
        """It is there as soon as it is restored."""


class Postgres:
    """A database; it is restored under another name, and gets its own in one move."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.url = database_address(name)
        self.fresh = database_address(f"{name}_fresh")

    def throw_away(self) -> None:
        copying.drop(self._name)
        copying.create(f"{self._name}_fresh")

    def put_in_place(self) -> None:
        copying.rename(f"{self._name}_fresh", self._name)


@pytest.fixture(params=["sqlite", "postgres"])
def house(request, tmp_path) -> Iterator[Sqlite | Postgres]:
    if request.param == "sqlite":
        yield Sqlite(tmp_path)
        return
    with copying.made() as name:
        yield Postgres(name)


@contextmanager
def on(house: Sqlite | Postgres, tmp_path: Path, seed: int) -> Iterator[World]:
    folder = tmp_path / "world"
    folder.mkdir()
    yield World(house.url, folder, TestClock(tmp_path / "clock", house.url), seed)


@pytest.mark.parametrize(
    "size", [12, pytest.param(90, marks=[pytest.mark.soak, pytest.mark.timeout(900)])]
)
async def test_e4_f20_the_drill(house, tmp_path, seed, size, monkeypatch):
    # An answer that is only slow must not look like work that never arrived.
    monkeypatch.setenv(jobs.REMOTE_PATIENCE, "60")
    file, slots = tmp_path / "house.tar", max(4, size // 10)
    with on(house, tmp_path, seed) as made:
        async with made as world:
            await open_service(world, by_key=True)
            old = [world.start_runner(f"old {n}", slots=slots, beat=0.5) for n in range(2)]
            for n in range(size):
                await world.submit("pair" if n % 3 == 0 else "mission", {"day": n})
            stuck = (await world.submit("hold", {"gate": "open"})).id
            await world.wait_held([stuck])
            await some_have_ended(world, size // 4)

            await asyncio.to_thread(backup.back_up, Installation(house.url, "database"), file)
            kept = set(await world.states())
            late = [(await world.submit("mission", {"day": -n})).id for n in range(1, 4)]
            await sent_for(world, late)
            known = {each.boot for each in await world.app.runners.list()}
            for each in old:
                await world.freeze(each)
            await world.app.close()
            house.throw_away()
            reopened = await asyncio.to_thread(restored, file, house.fresh)
            house.put_in_place()

            assert reopened.jobs > 0
            world.app = jobs.build(world.url, world.folder)
            for each in old:
                each.send(signal.SIGCONT)
            world.open_gate("open")
            new = world.start_runner("new", slots=slots)
            await world.booted(new, *old)  # a boot of now each: those of before are over
            again = [(await world.submit("mission", {"day": n})).id for n in range(3)]
            await world.wait_ended()

            await nobody_of_before_wrote(world, known)
            assert kept | set(again) == set(await world.states())
            assert {State.DONE: len(kept) + 3} == {
                state: n for state, n in (await world.app.insights.counts()).items() if n
            }
            sent = Counter(work.key for work in read_log(world.folder))
            assert {1} == set(sent.values()), "nothing was started twice"
            pairs = size - size * 2 // 3
            assert size + pairs + len(late) + len(again) == len(sent), "under no other key"
            assert not problems(await world.history(), kept | set(again))


async def some_have_ended(world: World, n: int) -> None:
    async def ended() -> bool:
        return (await world.app.insights.counts()).get(State.DONE, 0) >= n

    await world.eventually(ended, f"{n} jobs are done")


async def sent_for(world: World, ids: list[int]) -> None:
    """What a backup cannot know: work that was begun for jobs which came after it."""

    async def sent() -> bool:
        seen = {work.key.split("-")[1] for work in read_log(world.folder)}
        return {str(id_) for id_ in ids} <= seen

    await world.eventually(sent, "the late jobs have begun elsewhere")


def restored(file: Path, url: str) -> Reopened:
    with backup.opened(file) as found:
        return backup.restore(
            found,
            Installation(url, "database"),
            incarnation=Ids().new(),
            migrations_of={"engine": ENGINE}.__getitem__,
            actor="drill",
        )


async def nobody_of_before_wrote(world: World, known: set[str]) -> None:
    database = await world.app.database()
    [(restored_at,)] = await rows(
        database, "SELECT at FROM audit WHERE verb = 'database.restored'"
    )
    after = await rows(database, "SELECT at, actor, type FROM events")
    assert [] == [row for row in after if row[1] in known and row[0] > restored_at]
    states = await rows(database, "SELECT boot, state FROM runners")
    assert not [boot for boot, state in states if boot in known and state == "alive"]


def problems(found: History, ids: set[int]) -> list[str]:
    """By the database alone: the ledger tells also of what was done for the one thrown away."""
    told = History(
        jobs=found.jobs,
        events=found.events,
        attempts=found.attempts,
        steps=found.steps,
        counts=found.counts,
        effects=[],
        accepted=[each for each in found.accepted if each.job in ids],
        retries=found.retries,
        caps=found.caps,
        deaths=found.deaths,
        finished=True,
    )
    return history.problems(told)
