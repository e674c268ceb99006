"""Every crash point x {kill, exception, reply lost}: whatever happens there, the work still ends once.

The points are recorded from a run and compared with a list, so that a new durable boundary must
join. `python -m tests.chaos.test_crash_points` writes the list anew. The gate takes a sample,
`RETOMA_SEED` another one; `./run test --soak` takes them all.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from retoma import db
from retoma.db.crashpoint import Harm
from retoma.engine import store
from retoma.engine.checker import effect_ledger
from retoma.engine.rules.states import State
from tests import nursery
from tests.chaos import crash_world, history
from tests.chaos.history import History
from tests.conftest import soaking

ROOT = Path(__file__).parent.parent.parent
GOLDEN = Path(__file__).with_name("crash_points.txt")
SAMPLE = 3  # cases beside those that are always tried; each is tried on both databases
ALWAYS = ("claim", "save", "settle", "submit", "unpause")

# A process that dies here holds two jobs that never end and more: then there is what to take back.
A_DEATH = "step.after_function=kill@2"
AFTER_A_DEATH = ("take_back",)
# Where only a client asks, its process ends by the exception; a runner must live through a lost reply.
CLIENT = (
    *(
        "again",
        "boot",
        "cancel",
        "declare_pool",
        "migrate",
        "pause",
        "put_back",
        "recover",
        "submit",
        "unpark",
    ),
    "unpause",
)


def points() -> list[str]:
    return GOLDEN.read_text().split()


def cases() -> list[tuple[str, Harm]]:
    every = [(point, harm) for point in points() for harm in Harm if possible(point, harm)]
    if soaking():
        return every
    rng = random.Random(int(os.environ.get("RETOMA_SEED", "7")))
    first = [(f"{verb}.after_commit", rng.choice(list(Harm))) for verb in ALWAYS]
    remote = [case for case in every if case[0].startswith("remote.")]
    first += rng.sample(remote, min(1, len(remote)))
    others = [case for case in every if case not in first]
    rng.shuffle(others)
    return first + others[:SAMPLE]


def possible(point: str, harm: Harm) -> bool:
    return harm is not Harm.REPLY_LOST or point.endswith(".after_commit")


def live(url: str, folder: Path, armed: str = "") -> "subprocess.CompletedProcess[str]":
    """One process of the world, from its first line to its end or its death."""
    environment = os.environ | {"RETOMA_CRASHPOINT": armed}
    return nursery.run(
        [sys.executable, "-m", crash_world.__name__, url, str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=crash_world.PATIENCE,
    )


def passed(folder: Path) -> set[str]:
    return {name for file in folder.glob("passed-*") for name in file.read_text().split()}


def recorded(url: str, other_url: str, folder: Path) -> list[str]:
    """All points of a quiet life, and of one that follows a death."""
    for address, armed in ((url, ""), (other_url, A_DEATH), (other_url, "")):
        ended = live(address, folder, armed)
        assert (-signal.SIGKILL if armed else 0) == ended.returncode, ended.stderr[-2_000:]
    return sorted(passed(folder))


def test_every_crash_point_is_on_the_list(tmp_path):
    """A new durable boundary must join: run `python -m tests.chaos.test_crash_points`."""
    urls = [f"sqlite:///{tmp_path / name}" for name in ("quiet.db", "dead.db")]

    assert points() == recorded(urls[0], urls[1], tmp_path)


@pytest.mark.parametrize(("point", "harm"), cases(), ids=str)
async def test_whatever_happens_at_a_crash_point_the_work_ends_once(
    database_url, tmp_path, point, harm
):
    """E1, E4, E5, E7, E9, E11, E13: one process is hurt there, a second one finishes."""
    folder = tmp_path / "ledger"
    folder.mkdir()
    deaths = 1
    if point.startswith(AFTER_A_DEATH):
        live(database_url, folder, A_DEATH)
        deaths = 2

    hurt = live(database_url, folder, f"{point}={harm}")
    assert point in passed(folder), "it never came by there"
    finished = live(database_url, folder)

    if harm is Harm.KILL:
        assert -signal.SIGKILL == hurt.returncode
    if harm is Harm.REPLY_LOST and not point.startswith(CLIENT):
        assert 0 == hurt.returncode, hurt.stderr[-2_000:]
    assert 0 == finished.returncode, finished.stderr[-2_000:]
    await check(database_url, folder, deaths)


async def check(url: str, folder: Path, deaths: int) -> None:
    told = await read_history(url, folder)
    assert [] == history.problems(told)
    assert {State.DONE, State.SKIPPED, State.CANCELED} >= {job.state for job in told.jobs}
    assert len(told.jobs) == 18
    assert_steps_ran_once(told, deaths)
    assert [("kind:chain", 0)] == await used(url)
    assert [("asked", None), ("claimed", None)] == await held(url)
    assert_nothing_runs_elsewhere(folder)


def assert_nothing_runs_elsewhere(folder: Path) -> None:
    """E6, by the other side's own log: of each job's work one completed, or one was stopped."""
    works = crash_world.Machine(folder).works()
    assert "running" not in works.values()
    ends = Counter((key.rsplit("-", 3)[1], status) for key, status in works.items())
    assert (1, 1) == (ends["left", "completed"], ends["right", "completed"])
    assert 1 <= ends["endless", "canceled"]


async def used(url: str) -> list[tuple[str, int]]:
    """What is counted as running under each limit."""
    database = db.open(url)
    try:
        found = await database.read(lambda tx: tx.all(db.adhoc("SELECT key, used FROM limits")))
    finally:
        database.close()
    return [(key, n) for key, n in found]


async def held(url: str) -> list[tuple[str, int | None]]:
    """Who holds the things of the pools: a hold that is over is none."""

    def look(tx: db.Transaction) -> list[tuple[str, int | None]]:
        pools = [(pool, store.pool.list_items(tx, pool)) for pool in ("asked", "claimed")]
        return [(pool, item.job) for pool, items in pools for item in items]

    database = db.open(url)
    try:
        return await database.read(look)
    finally:
        database.close()


async def read_history(url: str, folder: Path) -> History:
    database = db.open(url)
    try:
        rows = await history.read_rows(database)
    finally:
        database.close()
    return History(
        jobs=rows.jobs,
        events=rows.events,
        attempts=rows.attempts,
        steps=rows.steps,
        counts=rows.counts,
        effects=effect_ledger.effects(folder),
        accepted=effect_ledger.accepted(folder),
        retries={job.kind: crash_world.RETRY for job in rows.jobs},
    )


def assert_steps_ran_once(told: History, deaths: int) -> None:
    """And once more at most for each death that came before the step's commit."""
    starts = Counter((e.job, e.gen, e.step) for e in told.effects if e.phase == "start")
    # Of four chains a step and a loop of three, of the pair one, of two that borrow two each, and
    # what is done once.
    assert 22 == len(starts)
    assert 1 + deaths >= max(starts.values())


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        urls = [f"sqlite:///{folder}/{name}" for name in ("quiet.db", "dead.db")]
        GOLDEN.write_text("\n".join(recorded(urls[0], urls[1], Path(folder))) + "\n")


if __name__ == "__main__":
    main()
