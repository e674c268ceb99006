"""E6 by the other side's own log: never two live jobs there for one of ours, none forgotten."""

import json
import re
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from retoma.engine.rules.states import State
from tests.chaos import history
from tests.chaos.jobs import PORT
from tests.chaos.test_kill import kill_throughout
from tests.chaos.world import Process, World
from tests.lines import whole_lines

FAULTS = {
    "hang_up": 0.2,
    "late": 0.2,
    "lose": 0.05,
    "backwards": 0.2,
    "fail": 0.1,
    "double": 0.1,
}
KINDS = ("mission", "mission", "pair", "hasty")
EVERY_POINT = [
    f"{point}={harm}@1"
    for harm in ("kill", "exception", "reply_lost")
    for point in (
        *("save.before_commit", "save.after_commit"),
        *("remote.before_send", "remote.after_send"),
        *("settle.before_commit", "settle.after_commit"),
    )
    if harm != "reply_lost" or point.endswith("after_commit")
]
# Where a death is worst: between the intent and the call, and between the call and its handle.
WORST = (
    *("remote.before_send=kill@1", "remote.after_send=kill@1"),
    *("save.after_commit=kill@1", "save.after_commit=reply_lost@1"),
)
POINTS = [
    pytest.param(point, marks=() if point in WORST else pytest.mark.soak)
    for point in EVERY_POINT
]


@pytest.mark.parametrize(
    ("jobs", "kills"),
    [(20, 10), pytest.param(60, 1_000, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])],
)
async def test_e6_kills_at_random_double_and_lose_no_remote_work(new_world, jobs, kills):
    async with new_world() as world:
        await open_service(world, **FAULTS)
        runners = [world.start_runner(f"runner {n}", slots=4) for n in range(3)]
        await world.booted(*runners)

        ids: dict[int, str] = {}
        hits: list[int] = []
        while len(hits) < kills:  # as many jobs as that takes: `jobs` of them are always open
            for _ in range(jobs - await world.count_open()):
                kind = KINDS[len(ids) % len(KINDS)]
                ids[(await world.submit(kind, {"day": len(ids)})).id] = kind
            hits += await kill_throughout(world, runners, min(20, kills - len(hits)))
        await world.wait_ended()

        works = read_log(world.folder)
        assert not doubled(works)
        assert not [work.key for work in works if work.ended is None], "nothing runs on unseen"
        states = await world.states()
        assert {State.DONE} == {states[id_] for id_ in ids}
        await check_values(
            world, {id_ for id_, kind in ids.items() if kind == "mission"}, works
        )
        told_of(kills, ids, works)
        # The value of remote work was made by the other side: our ledger knows nothing of it. And
        # a handle that stood for somebody else's work was put right.
        wrong = history.problems(await world.history())
        theirs = re.compile(r"step (scrape|left|right|instead) holds|step remote:\S+ was comm")
        assert not [each for each in wrong if not theirs.search(each)]


def told_of(kills: int, ids: dict[int, str], works: "list[Seen]") -> None:
    """For whoever runs it with -s: what the other side saw."""
    statuses = Counter(work.status for work in works)
    print(f"{kills} kills, {len(ids)} jobs of ours, {len(works)} of theirs: {dict(statuses)}")


@pytest.mark.parametrize("point", POINTS)
async def test_e6_a_crash_around_the_send_is_survived(new_world, point):
    async with new_world() as world:
        await open_service(world)
        ids = await world.submit_all("mission", [{"day": n} for n in range(3)])
        world.start_runner("first", slots=1, crash=point)
        second = world.start_runner("second", slots=5)
        await world.wait_ended()

        works = read_log(world.folder)
        assert not doubled(works)
        assert not [work for work in works if work.ended is None]
        states = await world.states()
        assert {State.DONE} == {states[id_] for id_ in ids}
        await check_values(world, set(ids), works)
        assert second.running


@pytest.mark.parametrize("point", ["remote.before_stop", "remote.after_stop"])
async def test_e13_a_runner_killed_while_it_stops_remote_work_leaves_none_behind(
    new_world, point
):
    async with new_world() as world:
        await open_service(world, endless=True)
        victim = world.start_runner("victim", slots=1, crash=f"{point}=kill")
        job = await world.submit("mission", {"day": 1})
        await wait_accepted(world, 1)

        assert await world.app.cancel(job.id) in (State.WAITING, State.RUNNING)
        await died(world, victim)
        assert State.CANCELED is not (await world.states())[job.id], "not before it is stopped"
        world.start_runner("second", slots=1)
        await world.wait_ended()

        assert State.CANCELED is (await world.states())[job.id]
        assert ["canceled"] == [work.status for work in read_log(world.folder)]
        await world.verdict()


async def test_e12_a_batch_is_canceled_with_the_remote_work_of_its_jobs(new_world):
    async with new_world() as world:
        await open_service(world, endless=True)
        batch = await world.app.submit_many("mission", [{"day": n} for n in range(8)])
        victim = world.start_runner("victim", slots=8, crash="remote.after_stop=kill@3")
        await wait_accepted(world, 8)

        await batch.cancel()
        await died(world, victim)
        world.start_runner("second", slots=8)
        await world.wait_ended()

        assert {State.CANCELED: 8} == await batch.counts()
        assert ["canceled"] * 8 == [work.status for work in read_log(world.folder)]
        await world.verdict()


async def wait_accepted(world: World, n: int) -> None:
    async def accepted() -> bool:
        log = world.folder / "service.log"
        if not log.exists() or len(read_log(world.folder)) < n:
            return False
        return set((await world.states()).values()) <= {State.WAITING, State.RUNNING}

    await world.eventually(accepted, f"{n} jobs are at work elsewhere")


async def died(world: World, process: Process) -> None:
    async def is_dead() -> bool:
        return not process.running

    await world.eventually(is_dead, f"{process.name} is dead")


class Seen:
    """One job of the service, by its log."""

    def __init__(self, key: str, began: int) -> None:
        self.key = key
        self.began = began
        self.ended: int | None = None
        self.status = "live"


def read_log(folder: Path) -> "list[Seen]":
    works: dict[str, Seen] = {}
    for at, line in enumerate(whole_lines(folder / "service.log")):
        told = json.loads(line)
        if told["event"] == "accepted":
            works[told["id"]] = Seen(told["key"], at)
        else:
            works[told["id"]].ended = at
            works[told["id"]].status = told["status"]
    return list(works.values())


def doubled(works: "list[Seen]") -> list[str]:
    """Jobs of ours for which two of theirs were live at once."""
    by_job: dict[str, list[Seen]] = defaultdict(list)
    for work in works:
        by_job[work.key.rsplit("-", 1)[0]].append(work)
    return [
        job
        for job, its in by_job.items()
        for before, after in pairwise(its)
        if before.ended is None or before.ended > after.began
    ]


def test_the_check_sees_two_at_once():
    first, second = Seen("a-1", 0), Seen("a-2", 1)
    assert ["a"] == doubled([first, second])
    first.ended = 0
    assert not doubled([first, second])


async def check_values(world: World, done: set[int], works: "list[Seen]") -> None:
    completed = {work.key.split("-")[1] for work in works if work.status == "completed"}
    assert {str(id_) for id_ in done} <= completed


async def open_service(world: World, **faults: Any) -> Process:
    told = {
        "log": str(world.folder / "service.log"),
        "port_file": str(world.folder / PORT),
        "seed": world.seed,
        **faults,
    }
    service = world.start("service", "tests.chaos.remote_service", told)

    async def listens() -> bool:
        return (world.folder / PORT).exists()

    await world.eventually(listens, "the service listens")
    return service
