"""Every question about jobs, and what it answers."""

import asyncio
import re
from typing import Any

import pytest

from retoma import BadInput, Context, Park, Permanent, Retoma, Retry, State, Transient
from retoma.db import adhoc
from retoma.engine import insights, store
from retoma.engine.testing import drain
from tests.engine.aids import (
    AT_ONCE,
    about,
    boot,
    rows,
    running,
    submit,
)
from tests.house.files import SOURCE

# --- counts


async def counted(database) -> list[tuple[str, int]]:
    return sorted(await rows(database, "SELECT state, count(*) FROM jobs GROUP BY state"))


async def test_q4_the_counts_are_exact_at_every_instant_while_folding_goes_on(database_url):
    """Asked by others all the while, in one snapshot with the truth; folded all the while too."""
    async with Retoma(database_url) as app, Retoma(database_url) as other:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context, n: int) -> Any:
            await asyncio.sleep(0.002 * (n % 5))
            if n % 7 == 0:
                raise Permanent("sevens")
            if n % 5 == 0 and ctx.attempt == 1:
                raise Transient("fives")
            return Park("threes") if n % 3 == 0 else n

        await app.upgrade()
        seen = folds = 0
        watcher, folder = await other.database(), await app.database()

        def both(tx: Any) -> tuple[Any, Any]:
            return insights.count_jobs(tx), dict(
                tx.all(adhoc("SELECT state, count(*) FROM jobs GROUP BY state"))
            )

        async with running(app, slots=20):
            batch = await app.submit_many(story, range(300))
            async with asyncio.timeout(30):
                while (await batch.counts()).keys() - {State.DONE, State.DEAD, State.PARKED}:
                    told, truth = await watcher.read(both)
                    assert {State(state): n for state, n in truth.items()} == told
                    folds += await folder.write(store.fold_tallies, verb="fold")
                    seen += 1

        assert seen > 3
        assert folds > 3
        total = await batch.counts()
        assert 300 == sum(total.values())
        assert await counted(folder) == sorted((str(state), n) for state, n in total.items())


async def test_refused_writes_are_counted_and_are_no_state(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database)
        before = await app.refused_writes()

        await database.write(
            lambda tx: store.count_refused(tx, "me", {"work": 3}), verb="count"
        )
        await database.write(store.fold_tallies, verb="fold")
        await database.write(
            lambda tx: store.count_refused(tx, "me", {"work": 2}), verb="count"
        )

        assert (0, 5) == (before, await app.refused_writes())
        assert {State.WAITING: 1} == await app.counts()


# --- lists


async def test_jobs_come_newest_first_a_page_at_a_time(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database, 5)
        await submit(database, 2, kind="other")

        first = await app.jobs(limit=3)
        second = await app.jobs(limit=3, before=first[-1].id)

        assert [7, 6, 5] == [job.id for job in first]
        assert [4, 3, 2] == [job.id for job in second]
        assert [7, 6] == [job.id for job in await app.jobs(kind="other")]
        assert [] == await app.jobs(state="done")


@pytest.mark.parametrize("asked", [{"limit": 0}, {"limit": 201}, {"state": "asleep"}])
async def test_a_page_that_cannot_be_is_refused(database_url, asked):
    async with Retoma(database_url) as app:
        with pytest.raises(BadInput):
            await app.jobs(**asked)


async def test_the_timeline_tells_every_move_in_order_with_who_did_it(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=Retry(attempts=2, base=0, cap=0))
        async def story(ctx: Context) -> Any:
            raise Transient("503")

        job = await app.submit(story)
        await drain(app)
        await app.retry(job.id, actor="ana")

        events = await app.events(job.id)
        assert [
            "submitted", "claimed", "failed", "claimed", "buried", "again",
        ] == [event.type for event in events]  # fmt: skip
        assert list(range(1, 7)) == [event.seq for event in events]
        assert [None, 1, 1, 2, 2, None] == [event.epoch for event in events]
        assert "ana" == events[-1].actor
        assert sorted(event.at for event in events) == [event.at for event in events]


async def test_a_runner_shows_what_it_knows_and_whether_it_is_late(database_url, test_clock):
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await boot(database, "ana", knows=["a@1", "b@2"])
        [fresh] = await app.runners()
        test_clock.jump(61)
        [late] = await app.runners()

        assert ("ana", "alive", ["a@1", "b@2"]) == (fresh.name, fresh.state, fresh.knows)
        assert (False, True) == (fresh.expired, late.expired)


async def test_the_steps_of_a_job_show_when_and_under_which_epoch_they_were_made(database_url):
    async with Retoma(database_url) as app:

        async def twice(n: int) -> int:
            return 2 * n

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            await ctx.step("first", twice, 1)
            if ctx.attempt == 1:
                raise Transient("again")
            await ctx.step("second", twice, 2, version=3)

        job = await app.submit(story)
        await drain(app)

        first, second = await app.steps(job.id)
        assert ("first", 1, 1, "2") == (first.name, first.version, first.epoch, first.value)
        assert ("second", 3, 2, "4") == (
            second.name,
            second.version,
            second.epoch,
            second.value,
        )
        assert first.saved_at is not None


async def test_a_question_changes_nothing(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database)
        sql = "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM tallies)"
        before = await rows(database, sql)

        for ask in (app.get, app.explain, app.events, app.attempts, app.steps):
            await ask(1)
        await app.counts()

        assert before == await rows(database, sql)
        with pytest.raises(Exception, match=r"(?i)read.?only|readonly"):
            await database.read(lambda tx: store.submit_job(tx, about(), store.NewJob("1")))


async def test_a_list_of_a_batch_reads_only_between_its_first_and_its_last_job(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context, n: int) -> None: ...

        batches = [await app.submit_many(story, range(3)) for _ in range(3)]
        empty = await app.submit_many(story, [])
        text = (SOURCE / "engine/sql/list_jobs.sql").read_text()
        explain = adhoc(f"EXPLAIN QUERY PLAN {text}", f"EXPLAIN {text}")
        asked = {"before": None, "state": None, "kind": None, "batch": 2, "limit": 9}

        plan = await (await app.database()).read(lambda tx: str(tx.all(explain, **asked)))

        assert re.search(r"rowid>\? AND rowid<\?|Index Cond: \(\(id >= .* AND \(id <= ", plan)
        listed = [[job.id for job in await app.jobs(batch=batch.id)] for batch in batches]
        assert [[3, 2, 1], [6, 5, 4], [9, 8, 7]] == listed
        assert [] == await app.jobs(batch=empty.id)
        assert 9 == len(await app.jobs())
