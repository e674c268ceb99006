"""Gates on both databases: caps hold, what is set aside comes back, a paused batch waits (E16, E28)."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from retoma import (
    BadInput,
    Batch,
    Context,
    Limit,
    NotFound,
    Park,
    Permanent,
    Retoma,
    Skip,
    Snooze,
    State,
    Transient,
)
from retoma.db import Database
from retoma.engine import store
from retoma.engine.rules import settlement
from retoma.engine.rules.job import Claim
from retoma.engine.store import NewJob, Spot
from retoma.engine.testing import drain
from tests.engine.aids import (
    AT_ONCE,
    about,
    boot,
    change,
    claim,
    eventually,
    rows,
    running,
    settle,
    submit,
)

USED = "SELECT key, used FROM limits ORDER BY key"
ASIDE = "SELECT aside, count(*) FROM jobs WHERE aside IS NOT NULL GROUP BY aside ORDER BY aside"
# What counts is what runs, whatever has happened: `used` of each key, and the jobs that hold it.
APART = """SELECT l.key FROM limits l WHERE used <> (
    SELECT count(*) FROM jobs j WHERE j.state = 'running' AND j.limit_key = l.key)"""


class Gauge:
    """How many stories of each key are being told, and the most there ever were.

    Nobody goes before there were once so many of his key at the same time.
    """

    def __init__(self, **waits_for: int) -> None:
        self.waits_for = waits_for
        self.reached = {key: asyncio.Event() for key in waits_for}
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def told(self, *keys: str) -> None:
        for key in keys:
            self.now[key] += 1
            self.most[key] = max(self.most[key], self.now[key])
            if self.most[key] >= self.waits_for[key]:
                self.reached[key].set()
        await asyncio.sleep(0.005)
        for key in keys:
            await self.reached[key].wait()
        for key in keys:
            self.now[key] -= 1


async def test_e16_no_more_jobs_of_a_kind_run_at_once_than_its_limit(database_url):
    async with Retoma(database_url) as app:
        gauge = Gauge(work=3, free=4)

        @app.job(limit=3)
        async def work(ctx: Context, n: int) -> None:
            await gauge.told("work")

        @app.job
        async def free(ctx: Context, n: int) -> None:
            await gauge.told("free")

        batch = await app.submit_many(work, range(60))
        other = await app.submit_many(free, range(60))

        await drain(app, slots=20)

        assert {State.DONE: 60} == await batch.counts() == await other.counts()
        assert 3 == gauge.most["work"]
        assert 3 < gauge.most["free"]
        database = await app.database()
        assert [("kind:work", 0)] == await rows(database, USED)
        assert [] == await rows(database, ASIDE)


async def test_e16_each_key_has_its_own_room_and_both_gates_count(database_url):
    async with Retoma(database_url) as app:
        gauge = Gauge(all=5, a=2, b=2, c=2, d=2)

        @app.job(limit=[5, Limit(2, per="site")])
        async def scrape(ctx: Context, page: dict[str, Any]) -> None:
            await gauge.told("all", page["site"])

        batch = await app.submit_many(scrape, [{"site": "abcd"[n % 4]} for n in range(80)])

        await drain(app, slots=20)

        assert {State.DONE: 80} == await batch.counts()
        assert 5 == gauge.most.pop("all")
        assert {"a": 2, "b": 2, "c": 2, "d": 2} == gauge.most


# — what counts is what runs, however a claim ends —


async def returns(ctx: Context, n: int) -> Any:
    return n


async def skips(ctx: Context, n: int) -> Any:
    return Skip("not needed")


async def parks(ctx: Context, n: int) -> Any:
    return Park("ask somebody")


async def snoozes(ctx: Context, n: int) -> Any:
    return Snooze(0.01) if ctx.epoch < 3 else n


async def fails(ctx: Context, n: int) -> Any:
    raise Transient("not now")


async def dies(ctx: Context, n: int) -> Any:
    raise Permanent("never")


@pytest.mark.parametrize("story", [returns, skips, parks, snoozes, fails, dies])
async def test_e16_however_a_claim_ends_its_place_is_given_back(database_url, story):
    async with Retoma(database_url) as app:
        app.job(name="work", limit=2, retry=AT_ONCE)(_copy(story))
        await app.submit_many("work", range(12))

        await drain(app, slots=5)

        database = await app.database()
        assert [("kind:work", 0)] == await rows(database, USED)
        assert [] == await rows(database, ASIDE)
        assert State.WAITING not in {
            state for state, n in (await app.insights.counts()).items() if n
        }


def _copy(story: Any) -> Any:
    """Each app its own function: a decorated one carries its kind."""

    async def told(ctx: Context, payload: Any) -> Any:
        return await story(ctx, payload)

    return told


async def test_e16_a_canceled_and_a_released_job_give_their_places_back(database_url):
    async with Retoma(database_url) as app:
        begun = asyncio.Event()

        @app.job(limit=2)
        async def work(ctx: Context, n: int) -> None:
            begun.set()
            await asyncio.sleep(30)

        batch = await app.submit_many(work, range(4))
        database = await app.database()
        async with running(app, slots=4, grace=0.1):
            await begun.wait()
            await eventually(lambda: rows(database, ASIDE))
            [first, *_] = await app.jobs(state="running")
            assert State.RUNNING == await app.cancel(first.id)
            await eventually(lambda: _ended(batch, State.CANCELED, 1))
            await eventually(lambda: _running(app, 2))

            assert [("kind:work", 2)] == await rows(database, USED)

        assert [("kind:work", 0)] == await rows(database, USED)


async def _ended(batch: Batch, state: State, n: int) -> bool:
    return n == (await batch.counts()).get(state, 0)


async def _running(app: Retoma, n: int) -> bool:
    return n == len(await app.jobs(state="running"))


async def test_e16_what_a_lost_runner_held_is_given_back_with_its_jobs(database_url):
    """Taking back and giving back are one transaction; whoever waits behind the gate is put back."""
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "lost")
        await boot(database, "me")
        await limited(database, 6, {"site:a": 2})
        held = await past_gates(database, "lost", slots=6)
        assert 2 == len(held)
        assert [("limit:site:a", 4)] == await rows(database, ASIDE)

        await change(database, "UPDATE runners SET state = 'lost' WHERE boot = 'lost'")
        await database.write(lambda tx: store.take_back(tx, "me"), verb="take_back")

        assert [("site:a", 0)] == await rows(database, USED)
        assert [("limit:site:a", 2)] == await rows(database, ASIDE)
        assert 2 == len(await past_gates(database, "me", slots=6))
        assert [] == await rows(database, APART)


async def test_e16_a_late_settling_gives_nothing_back(database_url):
    """It was given back when the job was taken: a stale runner cannot open a gate."""
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "late")
        await limited(database, 2, {"site:a": 2})
        held = await past_gates(database, "late", slots=2)
        await change(database, "UPDATE runners SET state = 'lost' WHERE boot = 'late'")

        calls = [
            store.settles("late", [store.settle_row(c.held, settlement.done("1"))])
            for c in held
        ]
        answers = await database.write(lambda tx: tx.together(calls), verb="settle")

        assert [[], []] == answers
        assert [("site:a", 2)] == await rows(database, USED)


async def limited(database: Database, n: int, limits: dict[str, int], **how: Any) -> None:
    jobs = [NewJob(str(place), limits=limits) for place in range(n)]
    await database.write(
        lambda tx: store.submit_limited_jobs(tx, about(**how), jobs), verb="submit"
    )


async def past_gates(
    database: Database, me: str, *, slots: int, meet: int | None = None
) -> list[Claim]:
    found = await database.write(
        lambda tx: store.claim_past_gates(
            tx,
            me,
            [Spot("work")],
            ["work@1"],
            slots=slots,
            suspects=1,
            promote=True,
            meet=meet or slots,
        ),
        verb="claim",
    )
    return found.claims


# — caps —


async def test_a_raised_limit_lets_more_run_at_once_and_a_lowered_one_nobody(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await limited(database, 10, {"site:a": 2})
        assert 2 == len(await past_gates(database, "me", slots=10))

        await app.limits.set("site:a", 5)
        assert [("limit:site:a", 5)] == await rows(database, ASIDE)
        assert 3 == len(await past_gates(database, "me", slots=10))
        await app.limits.set("site:a", 1)
        assert [] == await past_gates(database, "me", slots=10)

        [seen] = await app.limits.list()
        assert ("site:a", 1, 5, True) == (seen.key, seen.cap, seen.used, seen.by_hand)
        await app.limits.set("site:a", None)
        assert [2] == [seen.cap for seen in await app.limits.list()]


async def test_what_the_code_says_holds_from_the_next_boot_also_for_keys_that_are_there(
    database_url,
):
    async with Retoma(database_url) as old:
        old.job(name="work", limit=[3, Limit(2, per="site")])(_copy(returns_page))
        await old.submit("work", {"site": "a"})
        await old.submit("work", {"site": "b"})
        await old.limits.set("site:b", 7)
        assert [3, 2, 7] == [seen.cap for seen in await old.limits.list()]

    async with Retoma(database_url) as new:
        new.job(name="work", limit=[4, Limit(5, per="site")])(_copy(returns_page))
        await drain(new)

        assert [4, 5, 7] == [seen.cap for seen in await new.limits.list()]


async def returns_page(ctx: Context, page: dict[str, str]) -> Any:
    return page


@pytest.mark.parametrize("cap", [0, -3, 2.5, "many", True])
async def test_a_cap_that_makes_no_sense_is_refused_and_changes_nothing(database_url, cap):
    async with Retoma(database_url) as app:
        with pytest.raises(BadInput, match="jobs run at once"):
            await app.limits.set("site:a", cap)
        with pytest.raises(BadInput, match="jobs run at once"):
            app.job(limit=cap)(_copy(returns))

        assert [] == await app.limits.list()


async def test_a_limit_that_nobody_knows_cannot_be_left_to_the_code(database_url):
    async with Retoma(database_url) as app:
        with pytest.raises(NotFound, match="no limit site:a"):
            await app.limits.set("site:a", None)


async def test_a_payload_whose_key_cannot_be_told_is_refused_and_nothing_submitted(
    database_url,
):
    async with Retoma(database_url) as app:
        app.job(name="work", limit=Limit(2, per="site"))(_copy(returns_page))

        with pytest.raises(BadInput, match="KeyError"):
            await app.submit_many("work", [{"site": "a"}, {"page": 1}])

        assert [] == await app.jobs()
        assert [] == await app.limits.list()


async def test_a_key_submitted_by_its_idempotency_key_counts_too(database_url):
    async with Retoma(database_url) as app:
        app.job(name="work", limit=Limit(2, per="site"))(_copy(returns_page))
        one = await app.submit("work", {"site": "a"}, key="one")
        again = await app.submit("work", {"site": "a"}, key="one")
        await app.submit_many("work", [{"site": "a"}, {"site": "b"}], keys=["two", "three"])

        assert one.id == again.id
        keys = "SELECT limit_key, count(*) FROM jobs GROUP BY limit_key ORDER BY limit_key"
        assert [("site:a", 2), ("site:b", 1)] == await rows(await app.database(), keys)


async def test_a_scheduled_job_counts_under_its_limit(database_url):
    async with Retoma(database_url) as app:
        app.job(name="work", limit=2)(_copy(returns))
        app.schedule("nightly", "work", cron="0 3 * * *", payload=1)
        await app.database()

        job = await app.schedules.run("nightly")

        keys = await rows(await app.database(), "SELECT id, limit_key FROM jobs")
        assert [(job.id, "kind:work")] == keys


async def test_two_versions_of_a_kind_share_their_limit(database_url):
    async with Retoma(database_url) as app:
        app.job(name="work", limit=2)(_copy(returns))
        app.job(name="work", version=2, limit=2)(_copy(returns))

        with pytest.raises(BadInput, match="different limits"):
            app.job(name="work", version=3, limit=3)(_copy(returns))


# — aside and back —


async def test_a_job_is_set_aside_once_and_put_back_when_there_is_room(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await limited(database, 5, {"site:a": 2})

        [first, second] = await past_gates(database, "me", slots=5)
        assert [] == await past_gates(database, "me", slots=5)
        assert [("limit:site:a", 3)] == await rows(database, ASIDE)
        await give_back(database, [first])

        assert [("limit:site:a", 2)] == await rows(database, ASIDE)
        [third] = await past_gates(database, "me", slots=5)
        assert second.job < third.job


async def give_back(database: Database, claims: list[Claim]) -> None:
    """Settle them as the group writer does."""

    def settled(tx: Any) -> None:
        rows = [store.settle_row(claim.held, settlement.done("1")) for claim in claims]
        tx.together([store.settles("me", rows)])
        store.give_back(tx, [claim.limit_key for claim in claims])

    await database.write(settled, verb="settle")


async def test_the_tick_puts_back_what_somebody_forgot(database_url):
    """A wake-up that was lost costs a tick, not the job: limits and batches alike."""
    async with Retoma(database_url) as app:
        app.job(name="work", limit=3)(_copy(returns))
        batch = await app.submit_many("work", range(10))
        database = await app.database()
        await change(database, "UPDATE jobs SET aside = 'limit:kind:work' WHERE id % 2 = 0")
        await change(database, "UPDATE jobs SET aside = 'batch:1' WHERE id % 2 = 1")

        async with running(app, slots=2, tick=0.2):
            await eventually(lambda: _ended(batch, State.DONE, 10))


async def test_jobs_without_a_gate_run_past_those_whose_gate_is_shut(database_url):
    """A claim sets aside and looks further, within one look around."""
    async with Retoma(database_url) as app:
        database = await app.database()
        gate = asyncio.Event()

        @app.job(queue="shared", limit=1)
        async def slow(ctx: Context, n: int) -> None:
            await gate.wait()

        app.job(name="quick", queue="shared")(_copy(returns))
        await app.submit_many(slow, range(3_000))
        behind = await app.submit_many("quick", range(20), priority=5)

        async with asyncio.timeout(90), running(app, slots=10, tick=600):
            await eventually(lambda: _ended(behind, State.DONE, 20))
            [[_, aside]] = await rows(database, ASIDE)
            await change(database, "UPDATE jobs SET state = 'done' WHERE aside IS NOT NULL")
            gate.set()

        assert 2_999 == aside


# — batches —


async def test_a_paused_batch_starts_nothing_and_goes_on_where_it_stopped(database_url):
    async with Retoma(database_url) as app:
        app.job(name="work")(_copy(returns))
        paused = await app.submit_many("work", range(2_500))
        other = await app.submit_many("work", range(30))
        assert await paused.pause()

        await drain(app, slots=20)
        assert {State.DONE: 30} == await other.counts()
        assert {State.WAITING: 2_500} == await paused.counts()
        assert [(f"batch:{paused.id}", 2_500)] == await rows(await app.database(), ASIDE)

        assert await paused.unpause()
        await drain(app, slots=500)
        assert {State.DONE: 2_500} == await paused.counts()


async def test_what_runs_when_its_batch_is_paused_ends(database_url):
    async with Retoma(database_url) as app:
        gate = asyncio.Event()

        @app.job
        async def work(ctx: Context, n: int) -> None:
            await gate.wait()

        batch = await app.submit_many(work, range(6))
        async with running(app, slots=2):
            await eventually(lambda: _running(app, 2))
            await batch.pause()
            gate.set()
            await eventually(lambda: _ended(batch, State.DONE, 2))
            await eventually(lambda: _aside(app, 4))


async def _aside(app: Retoma, n: int) -> bool:
    return [n] == [held for _, held in await rows(await app.database(), ASIDE)]


async def test_pause_and_unpause_many_at_a_time_change_it_once(database_url):
    async with Retoma(database_url) as app:
        app.job(name="work")(_copy(returns))
        batch = await app.submit_many("work", range(1_200))

        paused = await asyncio.gather(*(batch.pause() for _ in range(5)))
        await drain(app)
        unpaused = await asyncio.gather(*(batch.unpause() for _ in range(5)))

        assert [1, 1] == [sum(paused), sum(unpaused)]
        assert [] == await rows(await app.database(), ASIDE)
        await drain(app, slots=500)
        assert {State.DONE: 1_200} == await batch.counts()
        verbs = """SELECT verb FROM audit
            WHERE verb LIKE 'batch.%' AND verb <> 'batch.finished' ORDER BY id"""
        assert [("batch.paused",), ("batch.unpaused",)] == await rows(
            await app.database(), verbs
        )


async def test_what_comes_into_a_paused_batch_waits_too(database_url):
    async with Retoma(database_url) as app:
        app.job(name="work")(_copy(returns))
        batch = await app.submit_many("work", range(3))
        await drain(app)
        await batch.pause()

        [job, *_] = await app.jobs(batch=batch.id)
        await app.retry(job.id)
        await submit(await app.database(), 2, batch=batch.id)
        await drain(app)

        assert 3 == (await batch.counts())[State.WAITING]
        await batch.unpause()
        await drain(app)
        assert {State.DONE: 5} == await batch.counts()


async def test_a_batch_that_is_not_there_cannot_be_paused(database_url):
    async with Retoma(database_url) as app:
        app.job(name="work")(_copy(returns))
        batch = await app.submit_many("work", [1])
        await change(await app.database(), "DELETE FROM batches")

        with pytest.raises(NotFound, match="no batch"):
            await batch.pause()
        with pytest.raises(NotFound, match="no batch"):
            await batch.unpause()


# — fairness, priorities, time —

SIZES = [5_000, pytest.param(100_000, marks=[pytest.mark.soak, pytest.mark.timeout(900)])]


@pytest.mark.parametrize("size", SIZES)
async def test_e28_a_small_batch_is_through_within_100_claims(database_url, size):
    """Four large batches first, then one of ten, a twentieth of all claims coming back."""
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        for place in range(1, 5):
            await submit(database, size, batch=place)
        await submit(database, 10, batch=5)

        assert await claims_until_through(database, batch=5, jobs=10) <= 100


async def claims_until_through(database: Database, *, batch: int, jobs: int) -> int:
    claimed = 0
    while jobs:
        for each in await claim(database, "me", slots=10, suspects=0):
            claimed += 1
            again = claimed % 20 == 0
            jobs -= each.batch == batch and not again
            end = settlement.failed(0, "transient", {}) if again else settlement.done("1")
            await settle(database, "me", each.held, end)
    return claimed


async def test_e28_a_small_batch_is_through_soon_behind_a_gate_too(database_url):
    """Four batches of 500 under a limit of three, all of them set aside; then one of ten."""
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        for place in range(1, 5):
            await batch_of(database, place, 500)
        running = await past_gates(database, "me", slots=10, meet=2_000)
        for _ in range(100):
            running = await next_ones(database, running)
        await batch_of(database, 5, 10)

        claimed, left = 0, 10
        while left:
            running = await next_ones(database, running)
            claimed += len(running)
            left -= sum(each.batch == 5 for each in running)

        assert claimed <= 100


async def test_e28_an_old_batch_behind_its_gate_is_not_passed_for_ever(database_url):
    """For every job that ends a new one comes in, each a submission of its own."""
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await batch_of(database, 1, 30, cap=1)
        running = await past_gates(database, "me", slots=10, meet=100)

        through = 0
        for _ in range(60):
            await limited(database, 1, {"site:a": 1})
            running = await next_ones(database, running)
            through += sum(each.batch == 1 for each in running)

        assert through >= 10


async def batch_of(database: Database, batch: int, n: int, cap: int = 3) -> None:
    await change(
        database,
        "INSERT INTO batches (id, name, kind, created_at, first_job)"  # noqa: S608
        f" SELECT {batch}, 'b', 'work', (SELECT clock()), coalesce(max(id), 0) + 1 FROM jobs",
    )
    await limited(database, n, {"site:a": cap}, batch=batch)


async def next_ones(database: Database, running: list[Claim]) -> list[Claim]:
    await give_back(database, running)
    return await past_gates(database, "me", slots=10)


async def test_e28_the_smaller_number_goes_first_over_all_queues(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        knows = ["a@1", "b@1", "c@1"]
        await boot(database, knows=knows)
        for kind, priority in [("a", 5), ("b", 0), ("c", -5), ("a", -6)]:
            await submit(database, 3, kind=kind, priority=priority)

        found = await claim(database, "me", slots=7, queues=["a", "b", "c"], knows=knows)

        order = [(each.kind, each.priority) for each in found]
        assert [("a", -6)] * 3 + [("c", -5)] * 3 + [("b", 0)] == order


async def test_a_gate_keeps_priorities_and_what_is_not_due_yet(database_url, test_clock):
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await boot(database)
        await limited(database, 4, {"site:a": 1}, priority=0)
        await limited(database, 2, {"site:a": 1}, priority=5, delay=60)
        [running] = await past_gates(database, "me", slots=10)
        await limited(database, 1, {"site:a": 1}, priority=-5)
        await past_gates(database, "me", slots=10)

        test_clock.jump(61)
        order = []
        held = [running]
        while held:
            order += [each.priority for each in held]
            await give_back(database, held)
            held = await past_gates(database, "me", slots=10)

        assert [0, -5, 0, 0, 0, 5, 5] == order
