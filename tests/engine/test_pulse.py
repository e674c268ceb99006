"""The heartbeat and the ear of a runner."""

import threading
from datetime import timedelta
from typing import Any

from retoma import Retoma
from retoma.db import Away, Database
from retoma.engine import store
from retoma.engine.pulse import BEAT, LEASE, MARGIN, Pulse
from retoma.engine.testing import FakeClock
from tests.engine.aids import boot, submit


class Heard:
    """What a pulse told its runner."""

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self.rung = threading.Event()
        self.lost = threading.Event()

    def hear(self, topics: set[str]) -> None:
        self.topics |= topics
        if topics - {"*"}:
            self.rung.set()


def pulse_of(
    database: Database, clock: FakeClock, heard: Heard | None = None, **how: Any
) -> Pulse:
    told = heard or Heard()
    return Pulse(
        database,
        "me",
        clock,
        lease=how.get("lease", LEASE),
        beat=how.get("beat", BEAT),
        on_bell=told.hear,
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
        [before] = await app.runners()
        test_clock.jump(50)

        assert pulse_of(database, FakeClock()).beat()

        [after] = await app.runners()
        assert after.lease_until - before.lease_until > timedelta(seconds=49)
        assert (
            timedelta(seconds=60) <= after.lease_until - after.beat_at < timedelta(seconds=61)
        )


async def test_a_runner_starts_nothing_in_the_last_seconds_of_its_lease(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        clock = FakeClock(1000.0)
        pulse = pulse_of(database, clock)

        clock.advance(LEASE - MARGIN - 0.1)
        good = pulse.valid()
        clock.advance(0.2)
        over = pulse.valid()
        pulse.beat()

        assert (True, False, True) == (good, over, pulse.valid())
        assert clock.now() + LEASE - MARGIN == pulse.valid_until


async def test_a_late_runner_nobody_has_declared_lost_may_beat_again(database_url, test_clock):
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await boot(database)
        test_clock.jump(3600)

        assert pulse_of(database, FakeClock()).beat()
        assert ["alive"] == [runner.state for runner in await app.runners()]


async def test_e3_a_beat_of_a_lost_runner_is_refused_and_changes_nothing(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await database.write(
            lambda tx: store.move_runner(tx, "me", "lost", actor="x"), verb="move"
        )
        [before] = await app.runners()
        pulse = pulse_of(database, FakeClock())
        until = pulse.valid_until

        assert not pulse.beat()

        assert [before] == await app.runners()
        assert until == pulse.valid_until


def test_no_answer_is_not_an_answer_and_buys_no_time():
    for error in (Away("gone"), RuntimeError("odd")):
        clock = FakeClock()
        pulse = pulse_of(Deaf(error), clock)  # type: ignore[arg-type]
        until = pulse.valid_until
        clock.advance(30)

        assert pulse.beat()

        assert until == pulse.valid_until


async def test_a_runner_that_was_deaf_counts_its_touch_from_when_it_hears_again(
    database_url, test_clock
):
    """It may not declare others lost by a silence that was its own."""
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await boot(database)
        await boot(database, "other")
        pulse = pulse_of(database, FakeClock())
        pulse._database = Deaf(Away("gone"))  # type: ignore[assignment]
        pulse.beat()
        pulse._database = database
        test_clock.jump(61)

        pulse.beat()
        at_once = await database.write(lambda tx: store.lose_runners(tx, "me", 60), verb="lose")
        for _ in range(2):
            test_clock.jump(30)
            pulse.beat()
        later = await database.write(lambda tx: store.lose_runners(tx, "me", 60), verb="lose")

        assert ([], ["other"]) == (at_once, later)


async def test_the_ear_hears_what_rings_and_the_beat_goes_on(database_url):
    async with Retoma(database_url) as app, Retoma(database_url) as elsewhere:
        database = await app.database()
        await boot(database)
        heard, clock = Heard(), FakeClock()
        pulse = pulse_of(database, clock, heard)
        pulse.start()
        try:
            while "*" not in heard.topics:
                await submit_nothing(elsewhere)
            await submit(await elsewhere.database())

            assert heard.rung.wait(10)
        finally:
            pulse.stop()
        assert "work" in heard.topics
        assert not heard.lost.is_set()


async def submit_nothing(app: Retoma) -> None:
    await app.counts()


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
        pulse = pulse_of(database, FakeClock(), heard, beat=0.0)

        pulse.start()

        assert heard.lost.wait(10)
        pulse.stop()
