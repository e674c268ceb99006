"""Duties: one holder at a time, taken over from one who is not alive, fenced by boot and term."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from retoma import Context, Retoma, State
from retoma.db import Database
from retoma.engine import store
from retoma.engine.ops.leader_tasks import NEVER, Duties, Duty, DutyLost, Fence
from retoma.engine.store import Taken, Term
from retoma.engine.testing import FakeClock
from tests.engine.aids import boot, change, eventually, rows, running, submit

NAMES = [str(duty) for duty in Duty]


async def take(database: Database, me: str, names: list[str] = NAMES) -> dict[str, int]:
    """The duties of this boot, by name, with their terms."""
    taken = await database.write(lambda tx: store.take_duties(tx, me, names), verb="tick")
    return {each.term.duty: each.term.number for each in taken}


async def end(database: Database, me: str, state: str) -> None:
    await database.write(lambda tx: store.move_runner(tx, me, state, actor="test"), verb="test")


async def test_one_holder_at_a_time_and_the_next_one_has_the_next_term(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "a")
        await boot(database, "b")

        first, second = await take(database, "a"), await take(database, "b")
        again = await take(database, "a")
        await end(database, "a", "lost")
        third = await take(database, "b")

        assert dict.fromkeys(NAMES, 1) == first == again
        assert {} == second
        assert dict.fromkeys(NAMES, 2) == third


@pytest.mark.parametrize("state", ["leaving", "gone", "lost"])
async def test_who_is_not_alive_neither_keeps_a_duty_nor_takes_one(database_url, state):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "a")
        await boot(database, "b")
        await take(database, "a")

        await end(database, "a", state)

        assert {} == await take(database, "a")
        assert dict.fromkeys(NAMES, 2) == await take(database, "b")


async def test_e25_a_duty_this_code_does_not_know_is_left_to_one_who_does(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "old")
        await boot(database, "new")

        old = await take(database, "old", ["fold"])
        new = await take(database, "new")

        assert {"fold"} == old.keys()
        assert {*NAMES} - {"fold"} == new.keys()


async def test_however_many_reach_for_a_duty_at_once_one_has_it(database_url):
    async with Retoma(database_url) as app:
        places = [Retoma(database_url) for _ in range(4)]
        database = await app.database()
        await boot(database, "dead")
        await take(database, "dead")
        for n in range(8):
            await boot(database, f"r{n}")
        await end(database, "dead", "lost")

        opened = [await place.database() for place in places]
        taken = await asyncio.gather(*(take(opened[n % 4], f"r{n}") for n in range(8)))

        for place in places:
            await place.close()
        held = Counter(name for each in taken for name in each)
        assert dict.fromkeys(NAMES, 1) == held
        assert [(2,)] * len(NAMES) == await rows(database, "SELECT term FROM duties")


async def test_a_zombie_holder_changes_nothing(database_url):
    """Its duty was taken over while it slept: whatever it then writes is refused, all of it."""
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "a")
        await boot(database, "b")
        await submit(database, 3)
        await take(database, "a")
        zombie = Fence(database, Term("fold", "a", 1))
        await end(database, "a", "lost")
        before = await rows(database, "SELECT count(*) FROM tallies")

        with pytest.raises(DutyLost):
            await zombie.write(store.fold_tallies, verb="fold")
        await take(database, "b")
        with pytest.raises(DutyLost):
            await zombie.write(store.fold_tallies, verb="fold")

        assert before == await rows(database, "SELECT count(*) FROM tallies")
        assert [] == await rows(database, "SELECT 1 FROM counts")
        follower = Fence(database, Term("fold", "b", 2))
        assert 1 == await follower.write(store.fold_tallies, verb="fold")


async def test_a_term_that_was_this_boots_own_once_is_no_right_for_ever(database_url):
    """Taken from it and come back to it: what was begun in the old term may not end in the new."""
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "a")
        await take(database, "a")
        await change(database, "UPDATE duties SET term = 3 WHERE name = 'fold'")

        with pytest.raises(DutyLost):
            await Fence(database, Term("fold", "a", 1)).write(store.fold_tallies, verb="fold")


async def test_nobody_takes_a_duty_out_of_a_transaction_that_is_done_under_it(database_url):
    """On PostgreSQL the row is held to the commit; on SQLite nobody else writes meanwhile. Whoever
    ticks meanwhile does not wait for it."""
    async with Retoma(database_url) as app, Retoma(database_url) as other:
        database, elsewhere = await app.database(), await other.database()
        await boot(database, "a")
        await boot(database, "b")
        await take(database, "a")
        await end(elsewhere, "a", "leaving")
        inside, go_on = threading.Event(), threading.Event()

        def under_duty(tx: Any) -> None:
            assert store.holds_duty(tx, Term("fold", "a", 1))
            inside.set()
            assert go_on.wait(60)

        work = asyncio.create_task(database.write(under_duty, verb="fold"))
        await asyncio.to_thread(inside.wait, 60)
        ticking = asyncio.create_task(take(elsewhere, "b"))
        # Nobody waits on PostgreSQL; on SQLite there is one writer.
        await asyncio.wait([ticking], timeout=30 if database.dialect == "postgres" else 0.1)
        waited = not ticking.done()
        go_on.set()
        await work

        meanwhile = await ticking
        if database.dialect == "postgres":
            assert not waited
            assert {*NAMES} - {"fold"} == meanwhile.keys()
        assert 2 == (await take(elsewhere, "b"))["fold"]


# --- doing them


Chores = dict[str, Callable[[Fence], Awaitable[float]]]


async def held(database: Database, chores: Chores) -> tuple[Duties, FakeClock, asyncio.Event]:
    """The duties of a boot that has just ticked."""
    clock, woken = FakeClock(), asyncio.Event()
    duties = Duties(database, "me", clock, chores, first={}, wake=woken.set)
    await boot(database)
    await ticked(database, duties)
    return duties, clock, woken


async def ticked(database: Database, duties: Duties) -> None:
    await database.write(duties.take, verb="tick")
    duties.took()


async def test_a_duty_is_done_when_something_waits_and_again_when_it_says_so(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        done: list[int] = []

        async def fold(fence: Fence) -> float:
            done.append(fence.term.number)
            return 7.0 if len(done) == 1 else NEVER

        duties, clock, _ = await held(database, {Duty.FOLD: fold})
        assert NEVER == duties.next()
        await submit(database)
        await ticked(database, duties)
        assert await duties.done(Duty.FOLD)

        assert (1, 7.0) == (len(done), duties.next())
        clock.advance(6.9)
        duties.begin()
        assert not await duties.done(Duty.FOLD)
        clock.advance(0.2)
        assert await duties.done(Duty.FOLD)
        assert ([1, 1], NEVER) == (done, duties.next())


async def test_a_duty_that_goes_wrong_is_tried_again_and_the_others_go_on(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        done: Counter[str] = Counter()

        async def broken(fence: Fence) -> float:
            done["fold"] += 1
            raise ValueError("a bad row")

        async def schedule(fence: Fence) -> float:
            done["schedule"] += 1
            return NEVER

        duties, clock, _ = await held(database, {Duty.FOLD: broken, Duty.SCHEDULE: schedule})
        duties._seen = [
            Taken(Term("fold", "me", 1), 0.0),
            Taken(Term("schedule", "me", 1), 0.0),
        ]
        duties.took()
        await duties.done(Duty.FOLD)
        await duties.done(Duty.SCHEDULE)
        clock.advance(5.1)
        await duties.done(Duty.FOLD)

        assert {"fold": 2, "schedule": 1} == done


async def test_what_is_at_it_ends_with_the_boot(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        begun, ended = asyncio.Event(), asyncio.Event()

        async def fold(fence: Fence) -> float:
            begun.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()
            return NEVER

        await submit(database)
        duties, _, _ = await held(database, {Duty.FOLD: fold})
        duties.begin()
        await begun.wait()
        await duties.stop()

        assert ended.is_set()
        assert NEVER == duties.next()


# --- in a runner


async def test_tallies_are_folded_by_one_runner_while_another_works(database_url):
    async with Retoma(database_url) as app, Retoma(database_url) as other:

        async def work(ctx: Context, n: int) -> int:
            return n

        app.job(work)
        other.kinds.add(work.kind)  # type: ignore[attr-defined]
        async with running(app, name="holder", slots=1, tick=0.2):
            await eventually(lambda: holder(app))
            async with running(other, name="other", tick=0.2):
                batch = await other.submit_many(work, list(range(50)))
                await batch.wait()
                await eventually(lambda: nothing_to_fold(app))
                assert ["holder"] == await holder(app)

        assert {State.DONE: 50} == await app.insights.counts()


async def test_a_runner_that_leaves_folds_what_it_moved(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def work(ctx: Context, n: int) -> int:
            return n

        await app.submit_many(work, [1, 2, 3])
        await app.run(until_idle=True)

        assert await nothing_to_fold(app)
        assert {State.DONE: 3} == await app.insights.counts()


async def holder(app: Retoma) -> list[str]:
    found = await rows(
        await app.database(),
        "SELECT DISTINCT r.name FROM duties d JOIN runners r ON r.boot = d.boot",
    )
    return [name for (name,) in found]


async def nothing_to_fold(app: Retoma) -> bool:
    return [] == await rows(await app.database(), "SELECT 1 FROM tallies LIMIT 1")
