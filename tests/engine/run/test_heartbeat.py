"""The heartbeat of a runner instance, and the wake-ups that it hears between two heartbeats."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

import structlog

from retoma import Context, Retoma, Retry, State, db
from retoma.db import Away, Database
from retoma.engine import store
from retoma.engine.ports import Clock
from retoma.engine.query import AuditLine, AuditSearch
from retoma.engine.run.heartbeat import BEAT, LEASE, MARGIN, Heartbeat, HeartbeatThread
from retoma.engine.testing import FakeClock, drain
from tests.descriptors import files_left, many_open_files
from tests.engine.aids import boot, eventually, rows, running, submit


class Heard:
    """What a heartbeat told its runner."""

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self.begun = threading.Event()
        self.rung = threading.Event()
        self.lost = threading.Event()

    def hear(self, topics: set[str]) -> None:
        self.topics |= topics
        self.begun.set()
        if topics - {"*"}:
            self.rung.set()


def heartbeat_of(
    database: Database, clock: FakeClock, heard: Heard | None = None, **how: Any
) -> Heartbeat:
    told = heard or Heard()
    return Heartbeat(
        database,
        "me",
        clock,
        lease=how.get("lease", LEASE),
        beat=how.get("beat", BEAT),
        on_wake_up=told.hear,
        on_lost=told.lost.set,
    )


class Deaf:
    """A database that gives no answer."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def write_now(self, fn: Any, *, verb: str) -> bool:
        raise self.error


async def test_a_lease_is_six_beats():
    assert LEASE == 6 * BEAT


async def test_a_beat_renews_the_lease_in_the_database(database_url, test_clock):
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await boot(database)
        [before] = await app.runners.list()
        test_clock.jump(50)

        assert heartbeat_of(database, FakeClock()).beat()

        [after] = await app.runners.list()
        assert after.lease_until - before.lease_until > timedelta(seconds=49)
        assert (
            timedelta(seconds=60) <= after.lease_until - after.beat_at < timedelta(seconds=61)
        )


async def test_a_runner_starts_nothing_in_the_last_seconds_of_its_lease(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        clock = FakeClock(1000.0)
        heartbeat = heartbeat_of(database, clock)

        clock.advance(LEASE - MARGIN - 0.1)
        good = heartbeat.valid()
        clock.advance(0.2)
        over = heartbeat.valid()
        heartbeat.beat()

        assert (True, False, True) == (good, over, heartbeat.valid())
        assert clock.now() + LEASE - MARGIN == heartbeat.valid_until


async def test_a_late_runner_nobody_has_declared_lost_may_beat_again(database_url, test_clock):
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await boot(database)
        test_clock.jump(3600)

        assert heartbeat_of(database, FakeClock()).beat()
        assert ["alive"] == [runner.state for runner in await app.runners.list()]


async def test_e3_a_beat_of_a_lost_runner_is_refused_and_changes_nothing(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await database.write(
            lambda tx: store.move_runner(tx, "me", "lost", actor="x"), verb="move"
        )
        [before] = await app.runners.list()
        heartbeat = heartbeat_of(database, FakeClock())
        until = heartbeat.valid_until

        assert not heartbeat.beat()

        assert [before] == await app.runners.list()
        assert until == heartbeat.valid_until


def test_no_answer_is_not_an_answer_and_buys_no_time():
    for error in (Away("gone"), RuntimeError("odd")):
        clock = FakeClock()
        heartbeat = heartbeat_of(Deaf(error), clock)  # type: ignore[arg-type]
        until = heartbeat.valid_until
        clock.advance(30)

        assert heartbeat.beat()

        assert until == heartbeat.valid_until


async def test_a_runner_that_was_deaf_counts_its_touch_from_when_it_hears_again(
    database_url, test_clock
):
    """It may not declare others lost by a silence that was its own."""
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await boot(database)
        await boot(database, "other")
        heartbeat = heartbeat_of(database, FakeClock())
        heartbeat._database = Deaf(Away("gone"))  # type: ignore[assignment]
        heartbeat.beat()
        heartbeat._database = database
        test_clock.jump(61)

        heartbeat.beat()
        at_once = await database.write(lambda tx: store.lose_runners(tx, "me", 60), verb="lose")
        for _ in range(2):
            test_clock.jump(30)
            heartbeat.beat()
        later = await database.write(lambda tx: store.lose_runners(tx, "me", 60), verb="lose")

        assert ([], ["other"]) == (at_once, later)


async def test_wake_ups_are_heard_between_heartbeats(database_url):
    async with Retoma(database_url) as app, Retoma(database_url) as elsewhere:
        database = await app.database()
        await boot(database)
        heard = Heard()
        with beating(database, heartbeat_of(database, FakeClock(), heard)):
            while "*" not in heard.topics:
                await submit_nothing(elsewhere)
            await submit(await elsewhere.database())

            assert await asyncio.to_thread(heard.rung.wait, 10)
        assert "work" in heard.topics
        assert not heard.lost.is_set()


@contextmanager
def beating(database: Database, heartbeat: Heartbeat) -> Iterator[list[BaseException]]:
    """Its thread runs inside the block; what has ended it."""
    ended: list[BaseException] = []
    thread = HeartbeatThread(heartbeat, database, on_death=ended.append)
    thread.start()
    try:
        yield ended
    finally:
        thread.stop()


async def submit_nothing(app: Retoma) -> None:
    await app.insights.counts()


async def test_what_rang_before_the_ear_was_open_is_not_missed(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database)

        assert set() != database.wait_bell(0)
        assert set() == database.wait_bell(0)


async def test_a_runner_that_was_declared_lost_is_told_at_its_next_beat(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await database.write(
            lambda tx: store.move_runner(tx, "me", "lost", actor="x"), verb="move"
        )
        heard = Heard()
        with beating(database, heartbeat_of(database, FakeClock(), heard, beat=0.0)):
            assert await asyncio.to_thread(heard.lost.wait, 10)


# — when something goes wrong in its thread


async def test_a_handler_that_holds_the_event_loop_loses_no_lease(database_url):
    """F10: the heartbeat goes on beside it, in a thread and on a connection of its own."""
    async with Retoma(database_url) as app:

        @app.job(retry=Retry(attempts=1))
        async def holds_the_loop(ctx: Context) -> int:
            with ThreadPoolExecutor(1) as beside:
                return beside.submit(count_heartbeats, database_url).result()

        job = await app.submit(holds_the_loop)
        await drain(app, beat=0.1, loop_limit=0.0)

        found = await app.get(job.id)
        assert (State.DONE, "3") == (found.state, found.result)


def count_heartbeats(url: str) -> int:
    """Return when a runner has sent a few heartbeats; how many that were."""

    async def count() -> int:
        seen: set[Any] = set()
        async with Retoma(url) as app:
            database = await app.database()

            async def look() -> bool:
                seen.update(await rows(database, "SELECT beat_at FROM runners"))
                return len(seen) == 3

            await eventually(look, within=20)
        return len(seen)

    return asyncio.run(count())


async def test_a_process_with_more_than_1024_open_files_hears_wake_ups(database_url):
    async with Retoma(database_url) as app, Retoma(database_url) as elsewhere:

        @app.job
        async def work(ctx: Context) -> None: ...

        elsewhere.kinds.add(work.kind)  # type: ignore[attr-defined]
        with many_open_files():
            async with running(app, tick=600):
                first = await elsewhere.submit(work)
                await eventually(lambda: in_state(app, first.id, State.DONE))
                await asyncio.sleep(0.5)  # by now its first look is over, and it waits
                second = await elsewhere.submit(work)

                await eventually(lambda: in_state(app, second.id, State.DONE), within=20)


async def test_a_runner_whose_heartbeat_dies_gives_back_its_jobs_and_begins_anew(database_url):
    clock = BreakingClock()
    async with Retoma(database_url, clock=clock) as app:

        @app.job
        async def work(ctx: Context) -> int:
            if ctx.epoch == 1:
                await asyncio.sleep(600)
            return ctx.epoch

        job = await app.submit(work)
        with structlog.testing.capture_logs() as logged:
            async with running(app, grace=0.1, tick=600):
                await eventually(lambda: in_state(app, job.id, State.RUNNING))
                clock.broken = True
                (await app.database()).wake()

                await eventually(lambda: in_state(app, job.id, State.DONE), within=20)

        [left, died] = [each for each in await audit(app) if each.details is not None]
        assert ("runner.gone", "runner.leaving") == (left.verb, died.verb)
        assert {"why": "heartbeat: RuntimeError: no clock"} == died.details
        assert "2" == (await app.get(job.id)).result
        assert ["gone", "gone"] == [each.state for each in await app.runners.list()]
        assert "error" == next(
            each["log_level"] for each in logged if each["event"] == "runner.heartbeat_died"
        )


async def test_a_heartbeat_that_cannot_open_a_file_goes_on_and_listens_later(database_url):
    async with Retoma(database_url) as app:
        await boot(await app.database())
        heard, fresh = Heard(), Tried(db.open(database_url))
        with ExitStack() as stack:
            stack.callback(fresh.close)
            with files_left(0):
                heartbeat = heartbeat_of(fresh, FakeClock(), heard)
                died = stack.enter_context(beating(fresh, heartbeat))
                assert await asyncio.to_thread(fresh.tried.wait, 10)

            assert await asyncio.to_thread(heard.begun.wait, 20)

        assert [] == died


class Tried:
    """A database that says when somebody has tried to listen."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.tried = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def wait_bell(self, seconds: float) -> set[str]:
        try:
            return self._database.wait_bell(seconds)
        finally:
            self.tried.set()


class BreakingClock(Clock):
    """Breaks once, in the thread of a heartbeat."""

    broken = False

    def now(self) -> float:
        if self.broken and threading.current_thread() is not threading.main_thread():
            self.broken = False
            raise RuntimeError("no clock")
        return super().now()


async def in_state(app: Retoma, job: int, state: State) -> bool:
    return (await app.get(job)).state is state


async def audit(app: Retoma) -> list[AuditLine]:
    return (await app.audit(AuditSearch())).lines
