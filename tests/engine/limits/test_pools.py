"""Things that must not be shared: one holder at a time, by the fence of the job that holds them."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from retoma import (
    BadInput,
    Context,
    LeaseLost,
    NotFound,
    Retoma,
    Snooze,
    State,
    Transient,
    db,
)
from retoma.codec import Unstorable, decode
from retoma.db import Busy, ReplyLost, crashpoint
from retoma.db.crashpoint import Harm
from retoma.engine import store
from retoma.engine.rules.events import EventType
from retoma.engine.rules.job import Held, Item, Scope
from retoma.engine.rules.pool_items import Freeing, Taking
from retoma.engine.store.pool import PoolRules
from retoma.engine.testing import FakeClock, crash_at, drain
from tests.engine import aids
from tests.engine.aids import AT_ONCE, eventually, running
from tests.engine.writing.test_group_writer import Desk


async def holders(app: Retoma, pool: str = "proxies") -> dict[str, int | None]:
    return {item.name: item.job for item in await app.pools.items(pool)}


async def test_e17_a_thing_has_one_holder_and_the_others_wait_outside(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1, "b": 2})
        inside: set[str] = set()
        seen: list[int] = []

        @app.job
        async def scrape(ctx: Context) -> None:
            async with ctx.use("proxies") as proxy:
                assert proxy.name not in inside
                inside.add(proxy.name)
                seen.append(len(inside))
                await asyncio.sleep(0.01)
                inside.discard(proxy.name)

        batch = await app.submit_many(scrape, [None] * 20)
        await drain(app)

        assert {State.DONE: 20} == await batch.counts()
        assert 2 == max(seen)
        assert {"a": None, "b": None} == await holders(app)
        jobs = await app.jobs(limit=50)
        assert {0} == {job.failures for job in jobs}, "to wait for a pool costs no attempt"


async def test_what_waits_for_a_pool_says_so(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1})
        gate = asyncio.Event()

        @app.job
        async def scrape(ctx: Context) -> None:
            async with ctx.use("proxies"):
                await gate.wait()

        await app.submit_many(scrape, [None] * 2)
        async with running(app):
            [waiting] = await eventually(lambda: aside(app))
            assert "pool:proxies" == waiting
            gate.set()


async def aside(app: Retoma) -> list[str]:
    return [job.aside for job in await app.jobs() if job.aside is not None]


async def test_e17_a_hold_of_the_job_survives_its_attempts_and_ends_with_it(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1, "b": 2})
        had: list[str] = []

        @app.job(retry=AT_ONCE)
        async def scrape(ctx: Context) -> Any:
            proxy = await ctx.use("proxies", scope="job")
            had.append(proxy.name)
            if len(had) == 1:
                raise Transient("again")
            return Snooze(0) if len(had) == 2 else proxy.name

        await app.submit(scrape)
        await drain(app)
        assert 1 == len(set(had)), "the same thing over a failure and a snooze"
        assert 3 == len(had)

        taken: list[str] = []

        @app.job
        async def other(ctx: Context) -> None:
            first = await ctx.use("proxies", scope="job")
            taken.append(first.name)

        await app.submit_many(other, [None] * 2)
        await drain(app)
        assert {"a", "b"} == set(taken), "what the first job held is free again"


async def test_e17_a_hold_until_release_outlives_the_job(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1})

        @app.job
        async def scrape(ctx: Context) -> None:
            await ctx.use("proxies", scope="release")

        first, second = await app.submit(scrape), await app.submit(scrape)
        async with running(app):
            await eventually(lambda: aside(app))
            assert {"a": first.id} == await holders(app)
            await app.pools.declare_free("proxies", "a")
            await eventually(lambda: done(app, second.id))
        assert {"a": second.id} == await holders(app)


async def test_e17_what_outlives_a_job_is_not_given_to_one_that_is_to_be_canceled(database_url):
    """It was declared free for good: nobody would be left to let go of it once more."""
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1})
        begun, go_on = asyncio.Event(), asyncio.Event()

        @app.job
        async def scrape(ctx: Context) -> None:
            begun.set()
            await go_on.wait()
            await ctx.use("proxies", scope="release")

        job = await app.submit(scrape)
        async with running(app):
            await begun.wait()
            await app.cancel(job.id)
            go_on.set()
            await eventually(lambda: canceled(app, job.id))
        assert {"a": None} == await holders(app)


async def canceled(app: Retoma, job: int) -> bool:
    return (await app.get(job)).state is State.CANCELED


async def done(app: Retoma, job: int) -> bool:
    return (await app.get(job)).state is State.DONE


async def test_one_bad_hand_does_not_empty_a_pool(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {n: n for n in "abcd"}, off_after=2)

        @app.job
        async def scrape(ctx: Context, hand: str) -> None:
            proxy = await ctx.use("proxies", scope="release")
            await proxy.release(worked=hand == "good", by=hand)

        for _ in range(40):
            await app.submit(scrape, "bad worker")
            await app.submit(scrape, "good")
        await drain(app)
        assert {"on"} == {item.state for item in await app.pools.items("proxies")}


async def test_a_vendors_outage_switches_nothing_off(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {n: n for n in "abcd"}, off_after=2)

        @app.job
        async def scrape(ctx: Context, hand: str) -> None:
            proxy = await ctx.use("proxies", scope="release")
            await proxy.release(worked=False, by=hand)

        for n in range(40):
            await app.submit(scrape, f"worker {n % 5}")
        await drain(app)
        assert {"on"} == {item.state for item in await app.pools.items("proxies")}


async def test_m3_more_than_half_of_a_vendor_failing_within_ten_minutes_is_an_outage(
    database_url,
):
    """DESIGN §7: none is switched off, though others of it work; what failed before is forgotten."""
    clock = FakeClock()
    async with Retoma(database_url, clock=clock) as app:
        await app.pools.declare("proxies", {n: n for n in "abc"}, off_after=2)

        @app.job
        async def scrape(ctx: Context, hand: int) -> None:
            proxy = await ctx.use("proxies", scope="release")
            await proxy.release(worked=proxy.name == "c", by=f"worker {hand}")

        async def used(times: int) -> dict[str, str]:
            for n in range(times):
                await app.submit(scrape, n)
                await drain(app)
            items = await app.pools.items("proxies")
            assert all(item.failures >= 2 for item in items if item.name != "c")
            return {item.name: item.state for item in items}

        assert {"a": "on", "b": "on", "c": "on"} == await used(12)
        await app.pools.switch("proxies", ["b"], on=False, reason="to be looked at")
        assert {"a": "on", "b": "off", "c": "on"} == await used(4), "it has failed all the same"
        clock.advance(601)
        assert {"a": "off", "b": "off", "c": "on"} == await used(4), "one of two is no outage"


async def test_a_thing_that_fails_in_many_hands_is_switched_off_with_a_reason(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"bad": 1, "good": 2}, off_after=3, healthy=1)

        @app.job
        async def scrape(ctx: Context, hand: str) -> None:
            proxy = await ctx.use("proxies", scope="release")
            await proxy.release(worked=proxy.name == "good", by=hand)

        for n in range(20):
            await app.submit(scrape, f"worker {n}")
            await drain(app)

        items = {item.name: item for item in await app.pools.items("proxies")}
        assert ("off", "on") == (items["bad"].state, items["good"].state)
        assert "failed" in str(items["bad"].reason)

        await app.pools.switch("proxies", ["bad"], on=True, reason="repaired")
        assert {"on"} == {item.state for item in await app.pools.items("proxies")}


async def test_what_works_again_has_no_failures_any_more(database_url):
    """Its failures are counted in a row: one now and then switches nothing off."""
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1, "b": 2}, off_after=2, healthy=1)

        @app.job
        async def scrape(ctx: Context, told: tuple[str, bool]) -> None:
            hand, worked = told
            proxy = await ctx.use("proxies", scope="release")
            await proxy.release(worked=worked or proxy.name == "b", by=hand)

        counted = []
        for n, worked in enumerate([False, True, False, True, False]):
            for _ in range(2):  # one for each of them
                await app.submit(scrape, (f"worker {n}", worked))
            await drain(app)
            counted.append(
                {item.name: item.failures for item in await app.pools.items("proxies")}
            )

        assert [1, 0, 1, 0, 1] == [failures["a"] for failures in counted]
        assert {"on"} == {item.state for item in await app.pools.items("proxies")}


async def test_not_the_last_one_if_there_is_another(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1, "b": 2}, pick="random")
        had: list[str] = []

        @app.job(retry=AT_ONCE)
        async def scrape(ctx: Context) -> Any:
            async with ctx.use("proxies") as proxy:
                had.append(proxy.name)
            return Snooze(0) if len(had) < 6 else None

        await app.submit(scrape)
        await drain(app)
        assert had[0] != had[1] != had[2] != had[3] != had[4] != had[5]


@pytest.mark.parametrize(
    "how",
    [
        {"pick": "best"},
        {"use_cap": 0},
        {"use_cap": -1},
        {"cool_down": -1},
        {"off_after": 1.5},
        {"healthy": -1},
        {"items": {"": 1}},
        {"items": {"a": float("nan")}},
    ],
)
async def test_a_pool_that_makes_no_sense_is_refused(database_url, how):
    async with Retoma(database_url) as app:
        with pytest.raises((BadInput, Unstorable)):
            await app.pools.declare("proxies", **how)
        assert [] == await app.pools.list()


async def test_an_unknown_pool_is_said_to_be_unknown(database_url):
    async with Retoma(database_url) as app:
        with pytest.raises(NotFound):
            await app.pools.items("none")
        with pytest.raises(NotFound):
            await app.pools.switch("none", ["a"], on=True, reason="why not")

        @app.job(retry=AT_ONCE)
        async def scrape(ctx: Context) -> None:
            await ctx.use("none")

        job = await app.submit(scrape)
        await drain(app)
        assert State.DEAD is (await app.get(job.id)).state


# — many at a time —


@pytest.fixture
def database(database_url) -> Iterator[db.Database]:
    opened = db.open(database_url)
    yield opened
    opened.close()


class PoolDesk(Desk):
    """A writer whose jobs want things of a pool."""

    async def fill(self, things: int, **rules: Any) -> "PoolDesk":
        named = [(f"thing {n}", str(n), "") for n in range(things)]

        def write(tx: db.Transaction) -> None:
            store.pool.put_pool(tx, "things", PoolRules(**rules), actor="test")
            store.pool.put_items(tx, "things", named, actor="test")

        await self.database.write(write, verb="test")
        return self

    def take(
        self, held: Held, scope: Scope = Scope.ATTEMPT, pool: str = "things", **how: Any
    ) -> "asyncio.Future[Any]":
        return self.writer.take("work", Taking(held, 1, pool, scope, **how))

    def free(self, held: Held, item: Item, **how: Any) -> "asyncio.Future[Any]":
        return self.writer.free(Freeing(held, item, **how))

    async def holders(self) -> Counter[int | None]:
        items = await self.database.read(lambda tx: store.pool.list_items(tx, "things"))
        return Counter(item.job for item in items)


async def seated(database: db.Database, **rules: Any) -> PoolDesk:
    """Six jobs, and four things for them."""
    desk = PoolDesk(database)
    await desk.sit_down(jobs=6)
    return await desk.fill(4, **rules)


async def test_all_who_wait_for_things_get_them_in_one_transaction(database):
    desk = await seated(database)
    got = await desk.told(*(desk.take(held) for held in desk.held))

    assert ["take"] == desk.troubled.groups
    assert 4 == len({item.id for item in got if item is not None})
    assert [None, None] == [item for item in got if item is None]
    assert {held.job: 1 for held in desk.held[:4]} == dict(await desk.holders())


async def test_what_is_let_go_of_at_the_end_goes_in_the_transaction_of_the_settling(database):
    """E17: nobody can see the attempt over and the thing held, or the other way round."""
    desk = await seated(database)
    first, *others = desk.held
    [item] = await desk.told(desk.take(first))
    desk.troubled.groups.clear()

    freed = desk.free(first, item)
    ended = desk.settle(first)
    taken = [desk.take(held) for held in others]

    assert [True, State.DONE] == await desk.told(freed, ended)
    assert ["take"] == desk.troubled.groups, "all of it in one"
    assert 4 == sum(item is not None for item in await desk.told(*taken))
    events = await desk.events(first)
    assert [EventType.HELD, EventType.FREED, EventType.DONE] == events[2:]


async def test_a_late_runner_gets_and_frees_nothing(database):
    """E4: the fence of things is that of jobs."""
    desk = await seated(database)
    mine, late = desk.held[0], Held(desk.held[1].job, 0)
    [item] = await desk.told(desk.take(mine))

    told = await desk.told(desk.take(late), desk.free(Held(mine.job, 0), item), desk.take(mine))

    assert [LeaseLost, LeaseLost, Item] == [type(each) for each in told]
    assert {mine.job: 2, None: 2} == await desk.holders()


@pytest.mark.parametrize("scope", Scope)
async def test_an_answer_that_was_lost_takes_nothing_twice(database, scope):
    desk = await seated(database)
    desk.troubled.after.append(ReplyLost("the answer was lost"))
    first, second = desk.held[:2]
    got = await desk.told(desk.take(first, scope), desk.take(second, scope))
    assert {first.job: 1, second.job: 1, None: 2} == await desk.holders()

    desk.troubled.after.append(ReplyLost("the answer was lost"))
    again = desk.take(first, scope, has=frozenset({got[0].id}))
    freed = desk.free(second, got[1])
    told = await desk.told(again, freed)
    assert told[1] is True
    mine = 2 if scope is Scope.ATTEMPT else 1
    assert {first.job: mine, None: 4 - mine} == await desk.holders()


async def test_a_database_that_was_busy_is_asked_again(database):
    desk = await seated(database)
    desk.troubled.before.append(Busy("somebody else was first"))

    [item] = await desk.told(desk.take(desk.held[0]))

    assert {desk.held[0].job: 1, None: 3} == await desk.holders()
    assert "thing 0" == item.name


async def test_an_unknown_pool_is_told_to_him_who_asked_alone(database):
    desk = await seated(database)
    first, second = desk.held[:2]

    wrong, right = await desk.told(desk.take(first, pool="none"), desk.take(second))

    assert isinstance(wrong, NotFound)
    assert "thing 0" == right.name
    assert [EventType.SUBMITTED, EventType.CLAIMED] == await desk.events(first)


async def test_who_lets_go_twice_is_told_no(database):
    desk = await seated(database)
    held = desk.held[0]
    [item] = await desk.told(desk.take(held))

    assert [True, False] == await desk.told(desk.free(held, item), desk.free(held, item))
    assert [False] == await desk.told(desk.free(held, item))


async def test_a_job_that_asks_twice_for_what_it_keeps_gets_one(database):
    desk = await seated(database)
    held = desk.held[0]

    first, second = await desk.told(desk.take(held, Scope.JOB), desk.take(held, Scope.JOB))

    assert first == second
    assert {held.job: 1, None: 3} == await desk.holders()


async def test_e17_what_the_dead_held_is_taken_when_nothing_else_is_left(database):
    """Over with its epoch: nobody has to notice, and no clock of its own decides."""
    desk = await seated(database)
    dead, *living = desk.held
    assert 1 == dead.job
    [lost] = await desk.told(desk.take(dead))
    await aids.change(database, "UPDATE jobs SET epoch = 9 WHERE id = 1")

    got = await desk.told(*(desk.take(held) for held in living[:4]))

    assert {held.job for held in living[:4]} == {*await desk.holders()}
    assert lost.name in {item.name for item in got}


# — in whose hands they fail —


async def test_a_kind_that_nothing_works_for_empties_no_pool(database_url):
    """E17, M3: one bad user among good ones; what it says of itself is not asked."""
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {n: n for n in "abcd"}, off_after=2)

        @app.job(retry=AT_ONCE)
        async def bad(ctx: Context) -> None:
            async with ctx.use("proxies"):
                raise Transient("never works")

        @app.job
        async def good(ctx: Context) -> None:
            async with ctx.use("proxies"):
                pass

        for _ in range(15):
            await app.submit(bad)
            await app.submit(bad)
            await app.submit(good)
        await drain(app, slots=3)
        assert {"on"} == {item.state for item in await app.pools.items("proxies")}


async def test_a_thing_that_fails_while_others_work_is_switched_off(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"bad": 1, "good": 2, "better": 3}, off_after=2)

        @app.job(retry=AT_ONCE)
        async def scrape(ctx: Context) -> None:
            async with ctx.use("proxies") as proxy:
                if proxy.name == "bad":
                    raise Transient("this one does not work")

        await app.submit_many(scrape, [None] * 12)
        await drain(app, slots=1)

        assert {"bad": "off", "good": "on", "better": "on"} == {
            item.name: item.state for item in await app.pools.items("proxies")
        }


async def test_who_is_stopped_says_nothing_of_what_it_held(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1})
        began = asyncio.Event()

        @app.job
        async def scrape(ctx: Context) -> None:
            async with ctx.use("proxies"):
                began.set()
                await asyncio.Event().wait()

        job = await app.submit(scrape)
        async with running(app):
            await began.wait()
            await app.cancel(job.id)
            await eventually(lambda: ended(app, job.id))

        [item] = await app.pools.items("proxies")
        assert (None, 1, 0, 1.0) == (item.job, item.uses, item.failures, item.score)


async def ended(app: Retoma, job: int) -> bool:
    return (await app.get(job)).ended


# — by hand —


AUDIT = "SELECT verb, subject FROM audit WHERE verb LIKE 'pool.%' ORDER BY id"


async def test_each_change_of_a_pool_is_told_once(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await app.pools.declare("proxies", {"a": 1, "b": 2}, use_cap=5)
        await app.pools.declare("proxies", {"a": 1, "b": 2}, use_cap=5)
        declared = [("pool.declared", "proxies"), ("pool.filled", "proxies/a"),
                    ("pool.filled", "proxies/b")]  # fmt: skip
        assert declared == await aids.rows(database, AUDIT)

        await app.pools.declare("proxies", {"a": 1, "b": 3, "c": 4}, use_cap=6)
        await app.pools.switch("proxies", ["a", "c"], on=False, reason="no money")
        await app.pools.switch("proxies", ["a", "c"], on=False, reason="no money")
        await app.pools.switch("proxies", ["a", "b"], on=True, reason="paid")
        assert [
            ("pool.declared", "proxies"),
            *(("pool.filled", f"proxies/{name}") for name in "bc"),
            *(("pool.switched_off", f"proxies/{name}") for name in "ac"),
            *(("pool.switched_on", f"proxies/{name}") for name in "ab"),
        ] == (await aids.rows(database, AUDIT))[3:]


async def test_of_things_to_switch_all_are_there_or_none_is_switched(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1, "b": 2})

        with pytest.raises(NotFound, match="'c', 'd'"):
            await app.pools.switch("proxies", ["a", "d", "c"], on=False, reason="why not")

        assert {"on"} == {item.state for item in await app.pools.items("proxies")}


# — with the claim —


async def test_e17_a_job_that_holds_a_thing_is_claimed_only_where_one_is_free(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1, "b": 2})
        inside: set[str] = set()
        most: list[int] = []

        @app.job(holds="proxies")
        async def scrape(ctx: Context) -> str:
            async with ctx.use("proxies") as proxy:
                assert proxy.name not in inside
                inside.add(proxy.name)
                most.append(len(inside))
                await asyncio.sleep(0.01)
                inside.discard(proxy.name)
            return proxy.name

        batch = await app.submit_many(scrape, [None] * 20)
        await drain(app)

        assert {State.DONE: 20} == await batch.counts()
        assert 2 == max(most)
        jobs = await app.jobs(limit=50)
        assert {(1, 0)} == {(job.epoch, job.failures) for job in jobs}, "claimed once each"
        assert {"a": None, "b": None} == await holders(app)
        assert [10, 10] == [item.uses for item in await app.pools.items("proxies")]


async def test_e16_limits_and_things_are_met_by_one_claim(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1, "b": 2})

        @app.job(queue="both", holds="proxies", limit=1)
        async def one(ctx: Context) -> str:
            return (await ctx.use("proxies")).name

        @app.job(queue="both", limit=2)
        async def other(ctx: Context) -> None: ...

        for _ in range(4):
            await app.submit(one)
            await app.submit(other)
        await drain(app)

        jobs = await app.jobs()
        assert {(State.DONE, 1)} == {(job.state, job.epoch) for job in jobs}
        assert {0} == {limit.used for limit in await app.limits.list()}


async def test_what_comes_with_the_claim_is_handed_out_without_asking_anybody(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1})

        @app.job(holds="proxies")
        async def scrape(ctx: Context) -> str:
            return (await ctx.use("proxies")).name

        job = await app.submit(scrape)
        with passing() as passed:
            await drain(app)

        assert "free.after_commit" in passed  # with its settling
        assert "take.after_commit" not in passed
        assert "a" == decode((await app.get(job.id)).result or "null")
        events = [event.type for event in await app.events(job.id)]
        assert [EventType.CLAIMED, EventType.HELD, EventType.FREED, EventType.DONE] == events[
            1:
        ]


@contextmanager
def passing() -> Iterator[list[str]]:
    """The crash points that are passed inside."""
    seen: list[str] = []
    crashpoint.on_pass = seen.append
    try:
        yield seen
    finally:
        crashpoint.on_pass = None


async def test_without_a_free_thing_a_job_waits_outside_and_says_so(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1})
        await app.pools.switch("proxies", ["a"], on=False, reason="no money")
        ran: list[int] = []

        @app.job(holds=["proxies", "licences"])
        async def scrape(ctx: Context) -> None:
            ran.append(ctx.epoch)

        job = await app.submit(scrape)
        async with running(app):
            assert ["pool:proxies"] == await eventually(lambda: aside(app))
            seen = await app.get(job.id)
            assert (State.WAITING, 0, 0) == (seen.state, seen.epoch, seen.failures)
            assert "of its 1 things 0 are held, 1 off" in await app.explain(job.id)

            await app.pools.switch("proxies", ["a"], on=True, reason="paid")
            await eventually(lambda: waits_for(app, "pool:licences"))
            assert "there is no pool of that name" in await app.explain(job.id)

            await app.pools.declare("licences", {"one": 1})
            await eventually(lambda: ended(app, job.id))
        assert [1] == ran
        assert [0] == [item.uses for item in await app.pools.items("licences")], "never used"
        assert {"a": None} == await holders(app)


async def waits_for(app: Retoma, gate: str) -> bool:
    return [gate] == await aside(app)


async def test_a_thing_that_came_with_the_claim_may_be_kept_for_the_job(database_url):
    """In a pool of one: what is kept needs no second one, however often the job is claimed."""
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1})
        had: list[str] = []

        @app.job(holds="proxies", retry=AT_ONCE)
        async def scrape(ctx: Context) -> Any:
            had.append((await ctx.use("proxies", scope="job")).name)
            if len(had) == 2:
                raise Transient("again")
            return Snooze(0) if len(had) < 4 else None

        first = await app.submit(scrape)
        await drain(app)
        assert ["a"] * 4 == had
        assert State.DONE is (await app.get(first.id)).state
        assert 1 == (await app.pools.items("proxies"))[0].uses

        had.clear()
        await app.submit(scrape)
        await drain(app)
        assert ["a"] * 4 == had, "it was free again"


@pytest.mark.parametrize("how", ["cancel", "leave", "fail", "never used"])
async def test_e17_however_an_attempt_ends_what_came_with_its_claim_is_free(database_url, how):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1})
        began = asyncio.Event()

        @app.job(holds="proxies", retry=AT_ONCE)
        async def scrape(ctx: Context) -> None:
            if how != "never used":
                await ctx.use("proxies")
            began.set()
            if how == "fail":
                raise Transient("not this time")
            if how in ("cancel", "leave"):
                await asyncio.Event().wait()

        job = await app.submit(scrape)
        async with running(app, grace=0.0):
            await began.wait()
            if how == "cancel":
                await app.cancel(job.id)
            if how != "leave":
                await eventually(lambda: ended(app, job.id))

        assert {"a": None} == await holders(app)
        if how == "leave":
            assert State.WAITING is (await app.get(job.id)).state


async def test_e17_a_claim_whose_answer_was_lost_has_its_thing(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1})
        had: list[str] = []

        @app.job(holds="proxies")
        async def scrape(ctx: Context) -> None:
            had.append((await ctx.use("proxies")).name)

        await app.submit_many(scrape, [None] * 3)
        # The first claim meets the gate, the second goes past it.
        with crash_at("claim.after_commit", Harm.REPLY_LOST, on_pass=2):
            await drain(app)

        assert ["a"] * 3 == had
        assert {"a": None} == await holders(app)
        assert {0} == {job.failures for job in await app.jobs()}


@pytest.mark.parametrize("holds", ["", ["a", "a"], [1], ["x" * 201]])
def test_a_kind_that_holds_nonsense_is_refused(holds):
    with pytest.raises(BadInput):
        Retoma("sqlite:///never.db").job(name="work", holds=holds)(nothing)


async def nothing(ctx: Context) -> None: ...
