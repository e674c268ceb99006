"""Celery workers as a team runs them, on a real broker: E26, E18, F6 and row 39 of the bad inputs."""

import asyncio
import json
import os
import pickle
import signal
from collections import Counter
from contextlib import ExitStack
from typing import Any

import pytest
import redis

from retoma.db import adhoc
from retoma.engine.rules.events import EventType
from retoma.engine.rules.states import State
from tests.chaos.world import Process
from tests.dispatch import project
from tests.dispatch.fleet import Fleet, said
from tests.dispatch.lossy import LossyRedis

BY_PID = adhoc(
    "SELECT r.pid, count(*) FROM jobs j JOIN runners r ON r.boot = j.runner GROUP BY r.pid"
)


@pytest.mark.parametrize(
    "jobs",
    [
        pytest.param(120, marks=pytest.mark.timeout(300)),
        pytest.param(2_000, marks=[pytest.mark.soak, pytest.mark.timeout(1_800)]),
    ],
)
async def test_e26_half_of_all_messages_lost_and_half_doubled_and_a_worker_killed(
    new_fleet, redis_url, jobs
):
    """E26 E18 F6: by somebody else's books each job has paid once, whatever the broker did."""
    with ExitStack() as stack:
        async with new_fleet() as fleet:
            world = fleet.world
            proxy = stack.enter_context(LossyRedis(redis_url, fleet.queue, world.rng))
            fleet.broker = proxy.url
            fleet.dispatch()
            workers = [
                fleet.start_worker("forks", pool="prefork", concurrency=2, beat=True),
                fleet.start_worker("alone", pool="solo"),
            ]
            half = jobs // 2
            (
                world.folder / project.SLOW
            ).touch()  # so that there is somebody at work to be killed
            await world.app.submit_many("pay", range(half), name="half")
            for n in range(jobs - half):
                await world.submit("pay", n)

            victim = await kill_one_at_work(fleet, workers)
            (world.folder / project.SLOW).unlink()
            workers[workers.index(victim)] = fleet.start_worker("again", beat=True)
            await world.wait_ended()

            paid = Counter(project.payments(world.folder))
            counts = await world.app.insights.counts()
            found = await world.history()

    claims = Counter(e.job for e in found.events if e.type is EventType.CLAIMED)
    print(f"lost {proxy.lost}, doubled {proxy.doubled}, overtaking {proxy.overtaking},"
          f" claims {claims.total()} of {jobs} jobs")  # fmt: skip
    assert {State.DONE: jobs} == counts
    assert jobs == len(paid)
    assert {1} == set(paid.values())
    assert proxy.lost > jobs / 4
    assert proxy.doubled > jobs / 4
    assert proxy.overtaking > 0


async def kill_one_at_work(fleet: Fleet, workers: list[Process]) -> Process:
    """With -9, its whole family, while one of it holds a job; stopped first, so that nothing moves."""
    world = fleet.world
    while True:
        victim = world.rng.choice(workers)
        if group_of(victim.pid) != victim.pid:  # just born: it leads nobody yet
            await asyncio.sleep(0.05)
            continue
        os.killpg(victim.pid, signal.SIGSTOP)
        if await held_by(fleet, victim):
            fleet.kill(victim)
            return victim
        os.killpg(victim.pid, signal.SIGCONT)
        await asyncio.sleep(0.05)


async def held_by(fleet: Fleet, worker: Process) -> int:
    """How many jobs the processes of a worker hold."""
    await asyncio.sleep(0.05)  # what was sent before is still being committed
    family = [
        seen.pid for seen in await fleet.world.living() if group_of(seen.pid) == worker.pid
    ]
    database = await fleet.world.app.database()
    held = await database.read(lambda tx: tx.all(BY_PID))
    return sum(n for pid, n in held if pid in family)


def group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


async def test_workers_of_celery_and_runners_stand_side_by_side(new_fleet):
    """And a fork of a pool that is killed is missed by its neighbours, and replaced."""
    async with new_fleet() as fleet:
        world = fleet.world
        fleet.dispatch()
        fleet.start_worker(beat=True)
        runner = world.start_runner(slots=2)
        await world.booted(runner)
        ids = await world.submit_all("hold", [{"gate": "open"}] * 4)
        apart = await world.submit("apart", 21)

        await world.wait_held(ids)  # more than either of them has room for
        forks = {each.pid for each in await world.living()} - {runner.pid}
        os.kill(min(forks), signal.SIGKILL)
        world.open_gate("open")
        await world.wait_ended()

        found = await world.history()
        lost = [event.job for event in found.events if event.type is EventType.LOST]
        assert 2 == len(forks)
        assert 1 == len(lost)
        assert {State.DONE} == {job.state for job in found.jobs}
        assert 42 == {job.id: job.result for job in found.jobs}[apart.id]


@pytest.mark.parametrize("pool", ["prefork", "solo", "threads"])
async def test_e8_a_worker_that_is_told_to_stop_gives_back_what_it_holds(new_fleet, pool):
    async with new_fleet(grace=0.5) as fleet:
        world = fleet.world
        fleet.dispatch()
        worker = fleet.start_worker(pool=pool, concurrency=1)
        job = await world.submit("hold", {"gate": "never"})
        await world.wait_held([job.id])

        worker.send(signal.SIGTERM)
        await asyncio.to_thread(worker.popen.wait, 60)

        events = [event.type for event in await world.app.events(job.id)]
        assert ["submitted", "claimed", "released"] == events
        assert {"gone"} == {each.state for each in await world.app.runners.list()}
        assert 0 == worker.popen.returncode


async def test_e26_a_dead_broker_only_means_that_runners_poll(new_fleet):
    """Submits go on, one warning is said, and whoever polls finishes everything."""
    async with new_fleet(broker="redis://127.0.0.1:1/0") as fleet:
        world = fleet.world
        dispatcher = fleet.dispatch()
        await world.submit_all("chain", [{"steps": 1, "ms": 1}] * 50)
        runner = world.start_runner(slots=10)
        await world.booted(runner)
        await world.wait_ended()

        await world.verdict()
        await world.app.close()
        assert 50 == dispatcher._sender.dropped


@pytest.mark.parametrize("copies", [1_000, pytest.param(10_000, marks=pytest.mark.soak)])
@pytest.mark.timeout(300)
async def test_row_39_bad_messages_are_said_once_and_change_nothing(
    new_fleet, redis_url, copies
):
    """Pickled, foreign, malformed, huge, unknown, and thousands of a job that is done."""
    async with new_fleet() as fleet:
        world = fleet.world
        fleet.dispatch()
        worker = fleet.start_worker(concurrency=2)
        job = await world.submit("pay", 1)
        await world.wait_ended()
        before = await world.history()

        broker = redis.Redis.from_url(redis_url)
        good = {"queue": "pay", "job": job.id}
        bad = [
            message(
                fleet.queue,
                good,
                body=pickle.dumps([[], good, {}]),
                content_type="application/x-python-serialize",
            ),
            message(fleet.queue, good, task="somebody.else"),
            message(fleet.queue, good, body=b"{not json"),
            message(fleet.queue, {**good, "payload": "x" * 100_000}),
            message(fleet.queue, {**good, "job": job.id + 10**6}),
        ]
        for each in [*bad, *bad, *bad]:
            broker.lpush(fleet.queue, each)
        broker.lpush(fleet.queue, *[message(fleet.queue, good)] * copies)
        last = await world.submit("pay", 2)  # behind all of them
        await world.wait_ended()
        broker.close()
        after = await world.history()

        told = said(worker, "hint.ignored")
        kinds = [next(k for k in KINDS if f"bad={k}" in plain(line)) for line in told]
        assert sorted(KINDS) == sorted(kinds)
        assert [] == said(worker, "ERROR") + said(worker, "CRITICAL")
        assert before.events == [e for e in after.events if e.job == job.id]
        assert [job.id, last.id] == sorted(project.payments(world.folder))


KINDS = ("encoding", "foreign", "shape", "size", "unknown")


def plain(line: str) -> str:
    """Without colours, and what a value is wrapped in."""
    return (
        line.replace("\x1b[0m", "")
        .replace("\x1b[35m", "")
        .replace("\x1b[36m", "")
        .replace("'", "")
    )


def message(
    queue: str,
    kwargs: dict[str, Any],
    *,
    task: str = "retoma.run",
    body: bytes | None = None,
    content_type: str = "application/json",
) -> str:
    """As kombu writes one into Redis."""
    import base64

    told = body if body is not None else json.dumps([[], kwargs, {"callbacks": None}]).encode()
    headers = {"lang": "py", "task": task, "id": "0", "argsrepr": "", "kwargsrepr": ""}
    properties = {
        "correlation_id": "0",
        "delivery_mode": 2,
        "delivery_info": {"exchange": "", "routing_key": queue},
        "priority": 0,
        "body_encoding": "base64",
        "delivery_tag": "0",
    }
    return json.dumps(
        {
            "body": base64.b64encode(told).decode(),
            "content-encoding": "utf-8",
            "content-type": content_type,
            "headers": headers,
            "properties": properties,
        }
    )
