"""Streams of a real server: it is killed, cut off and told to stop, and nobody misses anything."""

import asyncio
import signal
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from random import Random

import psycopg
import pytest

from retoma import Retoma
from retoma.console.exits import Exit
from retoma.console.processes import Held
from retoma.demo.boxed_world import HERE
from retoma.engine.testing import drain
from tests.engine.aids import eventually, rows
from tests.web.aids import ROOT_KEY, stories
from tests.web.sse import Ear, Follower
from tests.web.test_serve import Process, listening, process

KEYED = {"x-api-key": ROOT_KEY}
PATIENCE = 100.0  # seconds; all of them share two busy cores
ROUNDS = 10
EACH = 3  # events of a job that simply runs: submitted, claimed, done


async def test_e21_whoever_follows_hears_everything_once_and_in_order(database_url, tmp_path):
    await show(database_url, tmp_path, clients=20, events=1_000)


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_e21_two_hundred_follow_ten_thousand_events(database_url, tmp_path):
    await show(database_url, tmp_path, clients=200, events=10_000)


async def show(url: str, folder: Path, *, clients: int, events: int) -> None:
    """Cut off and back with a cursor; the server killed; an open transaction all the while."""
    chance = Random(7)
    # Also while the server is killed: else a client of anybody may get the port that nobody listens on.
    held = Held(HERE, 0)
    port, address = held.port, f"http://{HERE}:{held.port}/api/stream?kind=count"
    everybody = [Follower(address, KEYED) for _ in range(clients)]
    share = events // ROUNDS
    with ExitStack() as servers:
        servers.callback(held.close)
        async with stories(url) as app:
            await app.upgrade()
            server = await serving(servers, folder / "first", url, port)
            async with following(everybody):
                with held_open(app) as late:
                    for each in range(ROUNDS):
                        unlucky = chance.sample(everybody, clients // 5)
                        opened = [one.opened for one in unlucky]
                        for one in unlucky:
                            one.cut()
                        await burst(app, share)  # they miss some of it
                        if each == ROUNDS // 2:
                            server.child.kill()  # no farewell, whatever it was about to say
                            server.child.wait()
                            await burst(app, share)
                            await serving(servers, folder / "second", url, port)
                        await eventually(partial(all_back, unlucky, opened), PATIENCE)
                    # All at once: many slices of one poll, and some are cut off within it.
                    await app.submit_many("count", range(events))
                    for one in chance.sample(everybody, clients // 5):
                        await eventually(partial(begun, one), PATIENCE)
                        one.cut()
                    # Whoever holds a transaction open holds up nobody …
                    others = await told(app)
                    await eventually(lambda: all_have(everybody, others), PATIENCE)
                # … and is heard in the end.
                everything = await told(app)
                await eventually(lambda: all_have(everybody, everything), PATIENCE)

    assert [[]] * clients == [each.amiss for each in everybody]
    assert sum(others.values()) >= 2 * events
    assert everything.keys() - others.keys() == late
    assert all(each.opened > 1 for each in everybody)


async def serving(servers: ExitStack, folder: Path, url: str, port: int) -> Process:
    def started() -> Process:
        folder.mkdir()
        served = process(folder, url, "--no-link", "--port", str(port))
        return listening(servers.enter_context(served))

    return await asyncio.to_thread(started)


@asynccontextmanager
async def following(everybody: Sequence[Follower]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each.follow()) for each in everybody]
    try:
        await eventually(lambda: all_greeted(everybody), PATIENCE)
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def all_greeted(everybody: Sequence[Follower]) -> bool:
    return all(each.last is not None for each in everybody)


async def all_back(unlucky: Sequence[Follower], opened: Sequence[int]) -> bool:
    return all(one.opened > before for one, before in zip(unlucky, opened, strict=True))


async def begun(one: Follower) -> bool:
    """Whether it hears of the last burst, whose jobs have one event each."""
    return bool(one.heard) and one.heard[max(one.heard)] == 1


async def all_have(everybody: Sequence[Follower], expected: dict[int, int]) -> bool:
    return all(each.heard == expected for each in everybody)


async def burst(app: Retoma, events: int) -> None:
    await app.submit_many("count", range(-(-events // EACH)))
    await drain(app)


async def told(app: Retoma) -> dict[int, int]:
    """What stands in the log: by job, the last of its events."""
    found = await rows(await app.database(), "SELECT job, max(seq) FROM events GROUP BY job")
    return {int(job): int(seq) for job, seq in found}


@contextmanager
def held_open(app: Retoma) -> Iterator[set[int]]:
    """A transaction somebody forgot, committed when the block ends; the jobs that come with it.

    On SQLite, where a second writer would have to wait, it is a reader."""
    if app.url.startswith("sqlite:"):
        file = app.url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(file, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM jobs").fetchone()
            yield set()
        return
    with psycopg.connect(app.url) as writer:
        yield {app.submit_on(writer, "count", 0).id}


# — told to stop —


async def test_a_server_with_open_streams_leaves_in_order(database_url, tmp_path):
    """Nobody is waited for, nobody is cut: each stream ends as an answer does."""
    with ExitStack() as servers:
        server = await serving(servers, tmp_path / "first", database_url, 0)
        ears = [await Ear.open(f"{server.origin}/api/stream", KEYED) for _ in range(20)]
        try:
            greeted = [(await ear.next()) for ear in ears]
            server.child.send_signal(signal.SIGTERM)
            for ear in ears:
                await ear.to_the_end()
            code = await asyncio.to_thread(server.child.wait, PATIENCE)
        finally:
            for ear in ears:
                ear.close()
        log = server.err.read_text()

    assert ["hello"] * 20 == [heard.name for heard in greeted if heard is not None]
    assert Exit.OK == code
    assert "exceeded" not in log  # nobody had to be let go by force
    assert "Traceback" not in log
