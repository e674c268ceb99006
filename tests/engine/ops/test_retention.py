"""Retention: whole ended jobs go by age, and never what something refers to."""

import asyncio
from typing import Any

import pytest

from retoma import BadInput, Context, NotFound, Permanent, Retoma, State
from retoma.db import Database, Transaction
from retoma.engine import store
from retoma.engine.ops.leader_tasks import DutyLost, Fence
from retoma.engine.ops.retention import Keep, Retention
from retoma.engine.query import count_jobs
from retoma.engine.store import Term
from retoma.engine.store.alerts import Cause, Rule
from retoma.engine.testing import drain
from tests.clock import TestClock
from tests.engine.aids import boot, change, claim, eventually, rows, running, submit
from tests.engine.ops.test_leader_tasks import take

DAY = 86_400.0
TABLES = ("jobs", "steps", "job_evidence", "events", "batches")


def stories(app: Retoma) -> None:
    @app.job
    async def work(ctx: Context, how: str) -> str:
        kept = await ctx.step("look", looked, how)
        await ctx.attach("page.html", f"<p>{how}</p>")
        if how == "bad":
            raise Permanent("no good", code="BAD")
        return kept


async def looked(how: str) -> str:
    return how


async def history(app: Retoma, test_clock: TestClock, *, good: int = 3, bad: int = 1) -> None:
    """Ended jobs, a day old."""
    stories(app)
    await app.upgrade()
    test_clock.jump(0)
    await app.submit_many("work", ["good"] * good, name="lote", key="lote")
    if bad:
        await app.submit_many("work", ["bad"] * bad, name="ruins")
    await drain(app)
    test_clock.jump(DAY)


async def left(app: Retoma) -> dict[str, int]:
    database = await app.database()
    return {
        table: (await rows(database, f"SELECT count(*) FROM {table}"))[0][0]  # noqa: S608
        for table in TABLES
    }


async def test_what_ended_long_ago_goes_whole_and_its_events_stay_for_their_own_limit(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        await history(app, test_clock)
        before = await left(app)
        [bad] = await app.jobs(state=State.DEAD)

        retired = await app.retention.run_once(done="1h", events="7d")
        meanwhile = await left(app)
        test_clock.jump(7 * DAY)
        later = await app.retention.run_once(done="1h", events="7d")

        assert (3, 1, 0) == (retired.jobs, retired.batches, retired.events)
        assert {**before, "jobs": 1, "steps": 1, "job_evidence": 1, "batches": 1} == meanwhile
        told = await app.events(bad.id)
        assert list(range(1, len(told) + 1)) == [event.seq for event in told]
        assert later.events == before["events"] - len(told) > 0
        assert {
            "jobs": 1,
            "steps": 1,
            "job_evidence": 1,
            "events": len(told),
            "batches": 1,
        } == (await left(app))


async def test_a_timeline_is_there_whole_or_not_at_all(database_url, test_clock):
    """Gapless stays true: events of a job that is gone go together, whatever the age of the first."""
    async with Retoma(database_url) as app:
        stories(app)
        await app.upgrade()
        test_clock.jump(0)
        job = await app.submit("work", "good")
        test_clock.jump(6 * DAY)  # its first event is old long before its last
        await drain(app)
        test_clock.jump(2 * DAY)

        await app.retention.run_once(done="1d", events="7d")
        told = await app.events(job.id)
        test_clock.jump(6 * DAY)
        await app.retention.run_once(done="1d", events="7d")

        with pytest.raises(NotFound):
            await app.get(job.id)
        assert "submitted" == told[0].type
        assert list(range(1, len(told) + 1)) == [event.seq for event in told]
        assert [] == await app.events(job.id)


async def test_young_open_and_kept_jobs_stay(database_url, test_clock):
    async with Retoma(database_url) as app:
        await history(app, test_clock, good=1)
        parked, waiting, running_ = [
            await app.submit("work", "good", delay=10 * DAY) for _ in range(3)
        ]
        database = await app.database()
        await change(
            database,
            f"UPDATE jobs SET state = 'parked' WHERE id = {parked.id}",  # noqa: S608
        )
        await boot(database)
        await change(
            database,
            f"UPDATE jobs SET state = 'running', runner = 'me', epoch = 1 WHERE id = {running_.id}",  # noqa: S608
        )
        test_clock.jump(100 * DAY)
        young = await app.submit("work", "good", delay=DAY)
        ended = await app.submit("work", "good", delay=DAY)
        await app.cancel(ended.id)

        retired = await app.retention.run_once(done="1h")

        assert 1 == retired.jobs
        stay = {job.id for job in await app.jobs()}
        assert {parked.id, waiting.id, running_.id, young.id, ended.id} < stay
        assert {State.DEAD} == {
            job.state for job in await app.jobs() if job.id < parked.id
        }  # kept for ever: no limit was set for it


async def test_without_a_limit_nothing_ever_goes(database_url, test_clock):
    async with Retoma(database_url) as app:
        await history(app, test_clock)
        test_clock.jump(3_650 * DAY)
        before = await left(app)

        retired = await app.retention.run_once()

        assert (0, 0, 0) == (retired.jobs, retired.batches, retired.events)
        assert before == await left(app)


async def test_more_than_a_page_goes_in_chunks_and_the_audit_log_tells_of_each(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        await app.upgrade()
        test_clock.jump(0)
        database = await app.database()
        many = 2 * store.RETIRE_CHUNK + 2_000
        await submit(database, many)
        await change(
            database, "UPDATE jobs SET state = 'done', turn = NULL, ended_at = created_at"
        )
        await change(database, "DELETE FROM tallies")
        test_clock.jump(DAY)

        retired = await app.retention.run_once(done="1h", actor="ana")

        assert many == retired.jobs
        told = await rows(
            database,
            "SELECT actor, subject FROM audit WHERE verb = 'retention.jobs' ORDER BY id",
        )
        assert many / store.RETIRE_CHUNK == len(told)
        assert ("ana", f"500 jobs, 1 to {store.RETIRE_CHUNK}") == told[0]


# --- what refers to it


async def test_e20_what_a_declared_column_names_stays_until_it_names_it_no_more(
    database_url, test_clock
):
    async with Retoma(database_url) as app, Retoma(database_url) as declaring:
        await history(app, test_clock)
        [kept, *_] = await app.jobs(state=State.DONE)
        await change(await app.database(), "CREATE TABLE quotes (id bigint, job bigint)")
        await change(
            await app.database(),
            f"INSERT INTO quotes VALUES (7, {kept.id}), (8, NULL)",  # noqa: S608
        )
        declaring.refers("quotes", "job")
        await declaring.database()

        # By one who was never told: the reference stands in the database.
        first = await app.retention.run_once(done="1h")
        stayed = await app.get(kept.id)
        saved = await app.steps(kept.id)
        await change(await app.database(), "DELETE FROM quotes")
        second = await app.retention.run_once(done="1h")

        assert (2, 1) == (first.jobs, second.jobs)
        assert (State.DONE, 1) == (stayed.state, len(saved))


async def test_e20_a_batch_stays_while_it_has_jobs_or_somebody_names_it(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        await history(app, test_clock, bad=1)
        database = await app.database()
        lote, ruins = sorted(await app.batches.list(), key=lambda batch: batch.id)
        await change(database, "CREATE TABLE rounds (batch bigint)")
        await change(database, f"INSERT INTO rounds VALUES ({lote.id})")  # noqa: S608
        app.refers("rounds", "batch", to="batch")

        named = await app.retention.run_once(done="1h")
        still = {batch.id for batch in await app.batches.list()}
        await change(database, "DELETE FROM rounds")
        unnamed = await app.retention.run_once(done="1h")
        fresh = await app.submit_many("work", ["good"], key="lote")

        assert (3, 0, {lote.id, ruins.id}) == (named.jobs, named.batches, still)
        assert (0, 1) == (unnamed.jobs, unnamed.batches)
        assert 1 == fresh.submitted  # its key is free again
        assert [ruins.id, fresh.id] == sorted(batch.id for batch in await app.batches.list())


async def test_e20_a_column_that_cannot_be_asked_stops_the_deleting(database_url, test_clock):
    """A table that has gone may have named anything: nothing is deleted on a guess."""
    async with Retoma(database_url) as app:
        await history(app, test_clock)
        app.refers("gone", "job")
        before = await left(app)

        with pytest.raises(Exception, match="gone"):
            await app.retention.run_once(done="1h")

        assert before == await left(app)


@pytest.mark.parametrize(
    ("table", "column"),
    [("quotes; DROP TABLE jobs", "job"), ("quotes", "job)"), ("", "job"), ("a.b.c", "job")],
)
def test_a_reference_is_two_names_and_nothing_else(database_url, table, column):
    with pytest.raises(BadInput, match="a reference is the name of a table"):
        Retoma(database_url).refers(table, column)


async def test_a_job_somebody_tries_again_at_the_same_moment_is_there_or_gone(
    database_url, test_clock
):
    """Never half of it: again and retention meet over the same jobs, many times."""
    async with Retoma(database_url) as app, Retoma(database_url) as other:
        await history(app, test_clock, good=30, bad=0)
        stories(other)
        ids = [job.id for job in await app.jobs(limit=100)]

        async def again(job: int) -> bool:
            try:
                await other.retry(job)
            except NotFound:
                return False
            return True

        retiring = asyncio.create_task(app.retention.run_once(done="1h"))
        tried = await asyncio.gather(*map(again, ids))
        retired = await retiring

        open_ = {job.id for job in await app.jobs(limit=100)}
        assert {job for job, there in zip(ids, tried, strict=True) if there} == open_
        assert len(ids) == retired.jobs + len(open_)
        steps = await rows(await app.database(), "SELECT DISTINCT job FROM steps")
        assert open_ == {job for (job,) in steps}


# --- the counters


async def test_counts_are_of_what_is_there_and_say_how_many_went(database_url, test_clock):
    async with Retoma(database_url) as app:
        await history(app, test_clock, good=3, bad=2)
        database = await app.database()
        ruins = next(batch for batch in await app.batches.list() if batch.name == "ruins")

        await app.retention.run_once(done="1h")
        unfolded = await app.insights.counts()
        await database.write(store.fold_tallies, verb="fold")
        folded = await app.insights.counts()
        await app.retention.run_once(dead="1h")

        assert {State.DEAD: 2} == unfolded == folded
        assert {} == await app.insights.counts()
        assert {} == await database.read(lambda tx: count_jobs(tx, ruins.id))
        await database.write(store.fold_tallies, verb="fold")
        went = "SELECT sum(n) FROM counts WHERE batch = -1 AND state = 'retired'"
        assert [(5,)] == [(int(n),) for (n,) in await rows(database, went)]
        assert [] == await rows(database, "SELECT 1 FROM counts WHERE n < 0")


# --- what the engine keeps for itself


async def test_rows_of_runners_that_ended_a_day_ago_go_if_they_hold_nothing(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        await app.upgrade()
        test_clock.jump(0)
        database = await app.database()
        for name in ("gone", "holding", "alive", "recent"):
            await boot(database, name)
        await submit(database)
        await claim(database, "holding")
        ended = "UPDATE runners SET state = 'lost' WHERE boot <> 'alive' AND boot <> 'recent'"
        await change(database, ended)
        test_clock.jump(DAY + 60)
        await change(
            database,
            "UPDATE runners SET state = 'gone', beat_at = (SELECT clock()) WHERE boot = 'recent'",
        )

        await app.retention.run_once()

        assert {"holding", "alive", "recent"} == {
            each.boot for each in await app.runners.list()
        }


async def test_minutes_and_ticks_of_long_ago_go_and_the_last_tick_stays(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        stories(app)
        app.schedule("nightly", "work", cron="0 3 * * *", payload="good")
        await app.upgrade()
        test_clock.jump(0)
        for _ in range(3):
            await app.schedules.run("nightly")
        await drain(app)
        last = (await app.schedules.list())[0].last_job
        database = await app.database()
        paced = await rows(database, "SELECT 1 FROM pace")
        test_clock.jump(31 * DAY)

        await app.retention.run_once()

        assert paced
        assert [] == await rows(database, "SELECT 1 FROM pace")
        assert last == (await app.schedules.list())[0].last_job
        assert 1 == len(await rows(database, "SELECT 1 FROM ticks"))


async def test_costs_of_days_nobody_can_ask_for_go_and_what_all_came_to_stays(
    database_url, test_clock
):
    async with Retoma(database_url) as app:

        @app.job()
        async def label(ctx: Context) -> None:
            ctx.cost(provider="acme", usd=1)

        async def spend() -> None:
            await app.submit(label)
            await drain(app)  # who leaves has everything added up

        await app.upgrade()
        test_clock.jump(0)
        await spend()
        test_clock.jump(1_050 * DAY)
        await spend()
        before = await periods(app)

        await app.retention.run_once()

        left = await periods(app)
        assert (4, 2) == (len(before - {""}), len(left - {""}))
        assert "" in left
        assert max(left) == max(before)
        assert [2] == [each.spent.usd for each in await app.costs.total()]


async def periods(app: Retoma) -> set[str]:
    found = await rows(await app.database(), "SELECT DISTINCT period FROM costs")
    return {period for (period,) in found}


# --- as a duty


async def test_a_runner_with_limits_retires_and_one_without_does_not(database_url, test_clock):
    async with Retoma(database_url) as app:
        await history(app, test_clock)

        async def none_done() -> bool:
            return not await app.jobs(state=State.DONE)

        async with running(app, tick=0.2):
            test_clock.jump(6)
            await asyncio.sleep(0.5)
            assert not await none_done()
        async with running(app, tick=0.2, keep=Keep(done=3600.0)):

            async def gone() -> bool:
                test_clock.jump(6)  # whenever it has taken the duty up
                return await none_done()

            await eventually(gone)


async def test_open_alerts_keep_none_behind_them(database_url, test_clock):
    """However many old ones are still open, those closed after them go; what is young stays."""
    async with Retoma(database_url) as app:
        await app.upgrade()
        test_clock.jump(0)
        database = await app.database()

        def told(tx: Transaction, names: list[str], *, closed: bool) -> None:
            for name in names:
                store.alerts.raise_alert(tx, Cause(Rule.BREAKER, name), {})
                if closed:
                    store.alerts.close_alert(tx, Cause(Rule.BREAKER, name))

        stay = [f"open{n}" for n in range(store.RETIRE_CHUNK + 1)]
        go, young = ([f"{sort}{n}" for n in range(3)] for sort in ("old", "new"))
        await database.write(lambda tx: told(tx, stay, closed=False), verb="test")
        await database.write(lambda tx: told(tx, go, closed=True), verb="test")
        test_clock.jump(8 * DAY)
        await database.write(lambda tx: told(tx, young, closed=True), verb="test")

        await app.retention.run_once(events="7d")

        left = await rows(database, "SELECT subject FROM alerts ORDER BY id")
        assert [*stay, *young] == [subject for (subject,) in left]


async def test_one_who_has_lost_the_duty_deletes_nothing(database_url, test_clock):
    async with Retoma(database_url) as app:
        await history(app, test_clock)
        database = await app.database()
        await boot(database, "a")
        await take(database, "a")
        await change(database, "UPDATE runners SET state = 'lost' WHERE boot = 'a'")
        before = await left(app)
        [(term,)] = await rows(database, "SELECT term FROM duties WHERE name = 'retention'")

        with pytest.raises(DutyLost):
            await Retention(Keep(done=1.0), "a").run_once(
                Fence(database, Term("retention", "a", term))
            )

        assert before == await left(app)


async def test_a_pass_that_was_cut_off_is_gone_on_with(database_url, test_clock):
    """Each chunk is whole: what a holder that died had not deleted, the next one deletes."""
    async with Retoma(database_url) as app:
        await app.upgrade()
        test_clock.jump(0)
        database = await app.database()
        await submit(database, 1_200)
        await change(
            database, "UPDATE jobs SET state = 'done', turn = NULL, ended_at = created_at"
        )
        test_clock.jump(DAY)
        mortal = Mortal(database, 2)

        with pytest.raises(ConnectionError):
            await Retention(Keep(done=60.0), "a").run_once(mortal)
        [(half,)] = await rows(database, "SELECT count(*) FROM jobs")
        rest = await Retention(Keep(done=60.0), "b").run_once(database)

        assert (200, 200) == (half, rest.jobs)


class Mortal:
    """A database that answers so many writes, and then no more."""

    def __init__(self, database: Database, writes: int) -> None:
        self.read = database.read
        self._database = database
        self._left = writes

    async def write(self, fn: Any, *, verb: str) -> Any:
        answer = await self._database.write(fn, verb=verb)
        self._left -= 1
        if self._left < 1:
            raise ConnectionError("gone")
        return answer


# --- bad input


@pytest.mark.parametrize(
    ("keep", "complaint"),
    [
        ({"done": 0}, "keep done: .* longer than nothing"),
        ({"dead": -1.0}, "negative"),
        ({"done": "soon"}, "no length of time"),
        ({"done": 10.0, "events": 5.0}, "keep them at least as long as jobs"),
        ({"dead": 10.0, "events": 9.0}, "keep them at least as long as jobs"),
    ],
)
def test_limits_that_make_no_sense_are_refused(keep, complaint):
    with pytest.raises(BadInput, match=complaint):
        Keep(**keep)
