"""Every question about jobs, and what it answers."""

import asyncio
import re
from typing import Any

import pytest

from retoma import BadInput, Context, Park, Permanent, Retoma, Retry, State, Transient
from retoma.db import Database, Statement, Transaction, adhoc, statement
from retoma.db.statements import Text, sections
from retoma.engine import query, store
from retoma.engine.query.pace import percentile
from retoma.engine.rules import settlement
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import DeadReason, ParkReason
from retoma.engine.testing import drain
from tests.databases import EMPTY
from tests.engine.aids import (
    AT_ONCE,
    about,
    boot,
    change,
    claim,
    rows,
    running,
    settle,
    submit,
)
from tests.house.sections import ENGINE, text_of

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
            return query.count_jobs(tx), dict(
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
        before = await app.runners.refused_writes()

        await database.write(
            lambda tx: store.count_refused(tx, "me", {"work": 3}), verb="count"
        )
        await database.write(store.fold_tallies, verb="fold")
        await database.write(
            lambda tx: store.count_refused(tx, "me", {"work": 2}), verb="count"
        )

        assert (0, 5) == (before, await app.runners.refused_writes())
        assert {State.WAITING: 1} == await app.insights.counts()


async def test_an_attempt_that_goes_on_has_no_end(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database)
        await boot(database, "me")
        await claim(database, "me")

        [attempt] = await app.attempts(1)

        assert (None, None) == (attempt.ended_at, attempt.ended)


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
        [fresh] = await app.runners.list()
        test_clock.jump(61)
        [late] = await app.runners.list()

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
        await app.insights.counts()

        assert before == await rows(database, sql)
        with pytest.raises(Exception, match=r"(?i)read.?only|readonly"):
            await database.read(lambda tx: store.submit_job(tx, about(), store.NewJob("1")))


async def test_a_list_of_a_batch_reads_only_between_its_first_and_its_last_job(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context, n: int) -> None: ...

        batches = [await app.submit_many(story, range(3)) for _ in range(3)]
        empty = await app.submit_many(story, [])
        text = text_of("list_jobs")
        explain = adhoc(f"EXPLAIN QUERY PLAN {text}", f"EXPLAIN {text}")
        asked = {"before": None, "state": None, "kind": None, "batch": 2, "limit": 9}

        plan = await (await app.database()).read(lambda tx: str(tx.all(explain, **asked)))

        assert re.search(r"rowid>\? AND rowid<\?|Index Cond: \(\(id >= .* AND \(id <= ", plan)
        listed = [[job.id for job in await app.jobs(batch=batch.id)] for batch in batches]
        assert [[3, 2, 1], [6, 5, 4], [9, 8, 7]] == listed
        assert [] == await app.jobs(batch=empty.id)
        assert 9 == len(await app.jobs())


# --- what runs: the funnel, and what does not move


async def test_the_funnel_counts_what_runs_and_what_is_parked_by_checkpoint(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await boot(database)
        await submit(database, 6)
        await claim(database, "me", slots=3)
        await change(database, "UPDATE jobs SET checkpoint = 'read' WHERE id <= 2")
        [last] = await claim(database, "me")
        await settle(database, "me", last.held, settlement.parked("?", ParkReason.OPERATOR))
        test_clock.jump(30)

        funnel = await app.insights.funnel()

        assert [
            ("work", None, State.PARKED, 1),
            ("work", "read", State.RUNNING, 2),
            ("work", None, State.RUNNING, 1),
        ] == [(each.kind, each.checkpoint, each.state, each.jobs) for each in funnel]
        assert all(29 < each.oldest < 60 for each in funnel)
        assert [] == await app.insights.funnel("other")


async def test_stuck_is_what_is_held_without_progress_or_by_a_runner_that_is_over(
    database_url, test_clock
):
    """MECHANICS 30: by index on what is held."""
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await boot(database, "ana", lease=7200.0)
        await boot(database, "rui", lease=60.0)
        await submit(database, 3)
        for me in ("ana", "ana", "rui"):
            await claim(database, me)

        fresh = await app.insights.stuck()
        test_clock.jump(61)
        orphaned = await app.insights.stuck()
        test_clock.jump(600)
        await change(database, "UPDATE jobs SET progress_at = (SELECT clock()) WHERE id = 2")
        quiet = await app.insights.stuck()

        assert [] == fresh
        assert [(3, "rui", True)] == [(one.job, one.runner, one.orphan) for one in orphaned]
        assert {(1, "ana", False), (3, "rui", True)} == {
            (one.job, one.runner, one.orphan) for one in quiet
        }
        assert all(660 < one.quiet < 700 for one in quiet)
        assert 3 == len(await app.insights.stuck(quiet=0.000001))


@pytest.mark.parametrize("asked", [{"quiet": -1}, {"quiet": "soon"}, {"limit": 0}])
async def test_a_strange_question_for_the_stuck_is_refused(database_url, asked):
    async with Retoma(database_url) as app:
        with pytest.raises(BadInput):
            await app.insights.stuck(**asked)


async def test_a_runner_shows_how_many_of_its_slots_are_in_use(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await submit(database, 3)
        await claim(database, "me", slots=2)

        [runner] = await app.runners.list()

        assert (10, 2, True) == (runner.slots, runner.held, runner.living)


async def test_a_job_that_is_being_settled_takes_no_slot_beyond_those_there_are(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await submit(database, 11)
        await claim(database, "me", slots=10)
        await claim(
            database, "me", slots=1
        )  # a story is over and its slot free before it is settled

        [runner] = await app.runners.list()

        assert (10, 10) == (runner.slots, runner.held)


# --- pace


async def test_the_pace_and_the_durations_are_told_folded_or_not(database_url, test_clock):
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await boot(database, lease=7200.0)
        await submit(database, 4)
        for length in (1, 1, 1, 40):
            [held] = await claim(database, "me")
            test_clock.jump(length)
            await settle(database, "me", held.held, settlement.done("1"))

        before = await app.insights.throughput(), await app.insights.durations()
        await database.write(store.fold_tallies, verb="fold")
        after = await app.insights.throughput(), await app.insights.durations()

        assert before == after
        minutes, [spent] = after
        done = [each for each in minutes if each.state is State.DONE]
        assert 4 == sum(each.jobs for each in done)
        assert ("work", 4) == (spent.kind, spent.attempts)
        assert 10 < spent.mean < 13
        assert 0.5 <= spent.p50 <= 2.1
        assert 32 <= spent.p95 <= 65.6
        assert [] == await app.insights.durations(state="dead")
        test_clock.jump(7200)
        assert ([], []) == (await app.insights.throughput(), await app.insights.durations())


@pytest.mark.parametrize("last", [0, -5, "30d", "soon"])
async def test_a_pace_of_no_time_or_too_much_is_refused(database_url, last):
    async with Retoma(database_url) as app:
        with pytest.raises(BadInput):
            await app.insights.throughput(last=last)


@pytest.mark.parametrize(
    ("buckets", "share", "expected"),
    [
        ([(0, 10)], 0.5, 0.001),
        ([(10, 10)], 0.5, 1.536),
        ([(10, 95), (20, 5)], 0.95, 2.048),
        ([(10, 1), (20, 1)], 1.0, 2097.152),
        ([], 0.5, 0.0),
    ],
)
def test_a_percentile_lies_inside_its_bucket(buckets, share, expected):
    assert expected == pytest.approx(percentile(buckets, share))


# --- counters by kind and code


async def test_counters_by_kind_and_by_code_are_exact_folded_or_not(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=Retry(attempts=1))
        async def story(ctx: Context, n: int) -> Any:
            if n % 2:
                raise Permanent("odd", code=f"ODD{n % 4}")

        @app.job
        async def other(ctx: Context) -> Any: ...

        batch = await app.submit_many(story, range(6))
        await app.submit(other)
        await drain(app)
        dead = await app.jobs(state="dead")
        await app.retry(dead[0].id)

        for _ in range(2):
            kinds, codes = await app.insights.counts_by_kind(), await app.dead.codes()
            assert {"other": {State.DONE: 1}, "story": kinds["story"]} == kinds
            assert {State.WAITING: 1, State.DONE: 3, State.DEAD: 2} == kinds["story"]
            assert {"ODD1": 1, "ODD3": 1} == codes
            assert {"story": kinds["story"]} == await app.insights.counts_by_kind(batch.id)
            await (await app.database()).write(store.fold_tallies, verb="fold")


# --- lists stay short however long the history is


async def test_every_list_by_state_or_kind_finds_the_same_as_looking_at_everything(
    database_url,
):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, knows=["work@1", "other@1"])
        for of in ("work", "other", "work"):
            await submit(database, 8, kind=of)
        both = {"queues": ("work", "other"), "knows": ("work@1", "other@1")}
        ends = (
            settlement.done("1"),
            settlement.skipped("no"),
            settlement.parked("?", ParkReason.OPERATOR),
            settlement.buried(DeadReason.PERMANENT, "x", {}),
            settlement.failed(90.0, "x", {}),
        )
        taken = await claim(database, "me", slots=10, **both)
        for claimed, end in zip(taken, ends * 2, strict=True):
            await settle(database, "me", claimed.held, end)
        await claim(database, "me", slots=2, **both)
        await app.cancel(24)
        everything = await app.jobs(limit=100)

        states: list[State | None] = [None, *State]
        kinds: list[str | None] = [None, "work", "other", "none"]
        for state in states:
            for kind in kinds:
                wanted = [
                    job
                    for job in everything
                    if (state is None or job.state is state)
                    and (kind is None or job.kind == kind)
                ]
                pages = await by_pages(app, state=state, kind=kind)
                assert wanted == pages, (state, kind)
                assert state is None or kind is not None or wanted, state


async def by_pages(app: Retoma, **which: Any) -> list[Job]:
    found: list[Job] = []
    while True:
        page = await app.jobs(limit=2, before=found[-1].id if found else None, **which)
        if not page:
            return found
        found += page


@EMPTY  # a plan depends on how large indices have once been
async def test_a_list_of_what_is_unusual_walks_its_own_index(database_url):
    """10,000 done jobs do not lengthen the way to the few that are not, with statistics or without."""
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await submit(database, 10_000)
        await change(database, "UPDATE jobs SET state = 'done', turn = NULL")
        await submit(database, 20)
        await change(database, "UPDATE jobs SET state = 'dead', turn = NULL WHERE id % 100 = 0")
        await claim(database, "me", slots=5)
        asked: dict[str, Any] = {"before": None, "kind": "work", "batch": 1, "state": "dead"}
        asked |= {"quiet": 600.0, "limit": 9}

        for _ in range(2):
            for verb, index in INDICES.items():
                plan = await plan_of(database, verb, asked)
                assert index in plan, f"{verb} does not use {index}:\n{plan}"
                assert "Seq Scan on jobs" not in plan, plan
                assert not re.search(r"SCAN (jobs|j)\b(?! USING (COVERING )?INDEX)", plan), plan
            await database.write(lambda tx: tx.run(ANALYZE), verb="test")


ANALYZE = Statement("analyze", *((Text("ANALYZE", answers=False),),) * 2)


INDICES = {
    "list_ends": "jobs_ends",
    "list_done": "jobs_done",
    "list_batch_ends": "jobs_batch",
    "list_running": "jobs_held",
    "list_waiting": "jobs_waiting",
    "stuck": "jobs_held",
    "funnel": "jobs_ends",
}


async def plan_of(database: Database, verb: str, asked: dict[str, Any]) -> str:
    package = next(each for each in ENGINE if verb in sections(each))
    made = statement(package, verb)

    def explained(tx: Transaction) -> str:
        text = getattr(made, database.dialect)[0].sql
        ask = "EXPLAIN QUERY PLAN" if database.dialect == "sqlite" else "EXPLAIN (COSTS off)"
        one = Text(f"{ask} {text}", answers=True)
        return "\n".join(
            str(row[-1]) for row in tx.all(Statement(verb, (one,), (one,)), **asked)
        )

    return await database.read(explained)
