"""Why a job is not running: a true sentence for each reason, with what would change it."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from retoma import (
    Context,
    Edge,
    Park,
    Permanent,
    Remote,
    Retoma,
    Retry,
    Skip,
    Snooze,
    Status,
    Transient,
)
from retoma.engine import store
from retoma.engine.rules import settlement
from retoma.engine.rules.events import LEADS_TO
from retoma.engine.rules.states import ParkReason
from retoma.engine.testing import drain
from tests.engine.aids import boot, change, claim, eventually, running, settle, submit
from tests.house.sections import text_of

# --- waiting


async def test_backing_off_and_until_when(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await submit(database)
        [held] = await claim(database, "me")
        await settle(database, "me", held.held, settlement.failed(90.0, "ERROR502", {}))

        said = await app.explain(held.job)

        assert said.startswith(f"job {held.job}: backing off after 1 failed attempts")
        assert "(code ERROR502): next try " in said
        assert said.endswith(("in 90 s", "in 89 s"))


async def test_scheduled_and_until_when(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await submit(database, delay=3600.0)

        said = await app.explain(1)

        assert said.startswith("job 1: scheduled for 20")
        assert said.endswith(("in 60 min", "in 59 min"))


async def test_snoozed_is_not_called_a_failure(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=Retry(base=0, cap=0))
        async def story(ctx: Context) -> Any:
            if ctx.attempt == 1:
                raise Transient("first")
            return Snooze(120)

        job = await app.submit(story)
        async with running(app):
            said = await eventually(lambda: snoozed(app, job.id))

        assert "snoozed by its own story: next look 20" in said


async def snoozed(app: Retoma, job: int) -> str:
    said = await app.explain(job)
    return said if "snoozed" in said else ""


async def test_no_runner_lives(database_url):
    async with Retoma(database_url) as app:
        await submit(await app.database())

        assert "no runner for work version 1 is alive: start one" in await app.explain(1)


@pytest.mark.parametrize("knows", ["other@1", "work@2"])
async def test_e25_no_living_runner_knows_the_kind_or_version(database_url, knows):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, knows=[knows])
        await submit(database)

        said = await app.explain(1)

        assert (
            "no runner for work version 1 is alive; 1 runners live, none of them knows" in said
        )


async def test_a_runner_whose_lease_is_over_does_not_count(database_url, test_clock):
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await boot(database)
        await submit(database)

        before = await app.explain(1)
        test_clock.jump(61)

        assert "waiting its turn; none before it; 1 runners know its kind" in before
        assert "no runner for work version 1 is alive" in await app.explain(1)


async def test_in_line_it_says_how_many_come_first_and_whether_a_slot_is_free(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await submit(database, 15)

        free = await app.explain(15)
        await claim(database, "me", slots=10)
        taken = await app.explain(15)

        assert "waiting its turn; 14 before it; 1 runners know its kind" in free
        assert "waiting its turn; 4 before it, and all 10 slots of the 1 runners" in taken


async def test_nobody_who_knows_it_has_room(database_url):
    """F8: the runners' own trouble is what holds it."""
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await submit(database)
        await change(database, "UPDATE runners SET trouble = 'there is no room left'")

        said = await app.explain(1)

        assert said.endswith(", which knows its kind, claims nothing: there is no room left")


async def test_a_long_line_is_not_counted_to_its_end(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await submit(database, 1100)

        assert "more than 1000 before it" in await app.explain(1100)
        assert "999 before it" in await app.explain(1000)


async def test_a_suspect_runs_alone(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database)
        await submit(database)
        await change(database, "UPDATE jobs SET lost = 2")

        assert "a suspect: it was on 2 runners that died" in await app.explain(1)


async def test_set_aside_by_which_gate(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database)
        await change(database, "UPDATE jobs SET aside = 'moon:full'")

        assert "set aside by moon:full: it goes on when that opens" in await app.explain(1)


async def test_e17_a_pool_with_nothing_free_says_what_became_of_its_things(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1, "b": 2, "c": 3}, cool_down=60)
        await app.pools.switch("proxies", ["b"], on=False, reason="it is slow")
        hold = asyncio.Event()

        @app.job
        async def story(ctx: Context, n: int) -> Any:
            async with ctx.use("proxies"):
                if n == 1:
                    await hold.wait()

        jobs = [await app.submit(story, 0), await app.submit(story, 1)]
        async with running(app, slots=1, tick=0.1):
            await eventually(lambda: runs(app, jobs[1].id))
            database = await app.database()
            last = await app.submit(story, 2)
            await change(
                database, "UPDATE jobs SET aside = 'pool:proxies' WHERE state = 'waiting'"
            )

            said = await app.explain(last.id)
            hold.set()

        assert "set aside by pool:proxies: of its 3 things 1 are held, 1 off, 1 resting" in said
        assert "it goes on when one is free, switched on or added" in said


async def test_a_breaker_says_since_when_why_and_when_it_is_tried(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await app.breakers.declare("site", rest=60)
        await app.breakers.open("site", "503 for all")
        await submit(database)
        await change(database, "UPDATE jobs SET aside = 'breaker:site'")

        opened = await app.explain(1)
        await change(database, "UPDATE breakers SET state = 'probing'")
        tried = await app.explain(1)
        await app.breakers.close("site")

        assert "set aside by breaker:site, open since 20" in opened
        assert "(503 for all): one job tries it at 20" in opened
        assert "somebody closes it, all go on" in opened
        assert "one job tries it right now" in tried
        assert "breaker" not in await app.explain(1)


async def test_what_waits_for_remote_work_says_when_it_asks_again(database_url):
    async with Retoma(database_url) as app:
        job = await at_work_elsewhere(app)
        async with running(app):
            said = await eventually(lambda: waits_for_it(app, job))

        assert (
            'waits for remote work scrape (number 1, handle "w7"): asks after it again' in said
        )
        assert said.endswith(("in 60 min", "in 59 min"))


async def test_e6_what_nobody_knows_says_of_which_work_and_how_to_say_it(database_url):
    async with Retoma(database_url) as app:
        job = await at_work_elsewhere(app, ConnectionError("hung up"))
        await drain(app)

        said = await app.explain(job)

        assert "parked (unknown_remote): nobody has seen the end of remote work scrape" in said
        assert "hung up" in said
        assert f"`retoma jobs send-again {job}`" in said
        assert f"`retoma jobs adopt {job} JSON`" in said


async def test_e6_a_step_of_our_own_that_nobody_saw_end_is_named(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=Retry(base=0, cap=0))
        async def story(ctx: Context) -> Any:
            async def pay() -> None:
                raise ConnectionError

            await ctx.step("pay", pay, once=True, key="may")

        job = await app.submit(story)
        await drain(app)

        assert "nobody has seen the end of step pay of may" in await app.explain(job.id)


async def at_work_elsewhere(app: Retoma, error: Exception | None = None) -> int:
    async def send(key: str, payload: Any) -> str:
        if error is not None:
            raise error
        return "w7"

    async def ask(handle: str) -> Status:
        return Status("running")

    remote = Remote(send=send, ask=ask, statuses={"done": Edge.DONE}, interval=3600)

    @app.job
    async def mission(ctx: Context) -> Any:
        return await ctx.remote("scrape", remote)

    return (await app.submit(mission)).id


async def waits_for_it(app: Retoma, job: int) -> str:
    said = await app.explain(job)
    return said if "asks after" in said else ""


async def test_a_limit_that_is_reached_says_how_many_run(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database)
        await change(database, "INSERT INTO limits (key, cap, used) VALUES ('openai', 3, 3)")
        await change(database, "UPDATE jobs SET aside = 'limit:openai'")

        assert "set aside by limit:openai: 3 of at most 3 run" in await app.explain(1)


async def test_e16_a_limit_of_a_kind_that_is_reached_is_named_met_or_not(database_url):
    async with Retoma(database_url) as app:

        @app.job(limit=1)
        async def story(ctx: Context, n: int) -> Any:
            if n:
                await asyncio.sleep(60)

        first = await app.submit(story, 1)
        async with running(app, grace=0.1):
            await eventually(lambda: runs(app, first.id))
            second = await app.submit(story, 0)

            said = await eventually(lambda: shut(app, second.id))

        assert "set aside by limit:kind:story: 1 of at most 1 run" in said


async def runs(app: Retoma, job: int) -> bool:
    return "running" in await app.explain(job)


async def shut(app: Retoma, job: int) -> str:
    said = await app.explain(job)
    return said if "limit:" in said else ""


async def test_a_paused_batch_says_how_to_go_on(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context, n: int) -> Any: ...

        batch = await app.submit_many(story, range(2), name="lote-42")
        await batch.pause()

        said = await app.explain(1)

        assert f"its batch {batch.id} (lote-42) is paused since 20" in said
        assert f"`retoma batches unpause {batch.id}`" in said


async def test_a_deadline_that_passed_while_it_waited(database_url, test_clock):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context) -> Any: ...

        test_clock.jump(0)
        job = await app.submit(story, deadline="5m")
        test_clock.jump(301)

        assert "its deadline passed at 20" in await app.explain(job.id)


# --- running


async def test_where_it_runs_that_it_was_asked_to_stop_or_is_left_alone(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await boot(database, "ana")
        await submit(database)
        await claim(database, "ana")

        runs = await app.explain(1)
        await app.cancel(1)
        asked = await app.explain(1)
        test_clock.jump(61)
        silent = await app.explain(1)
        await database.write(
            lambda tx: store.move_runner(tx, "ana", "lost", actor=""), verb="t"
        )
        lost = await app.explain(1)

        assert "running on ana since 20" in runs
        assert "running; asked to stop at 20" in asked
        assert "its runner ana is silent since 20" in silent
        assert "another runner takes the job back on its next tick" in silent
        assert "its runner is lost: it is taken back within seconds" in lost


async def test_without_progress_it_says_for_how_long_and_when_it_was_seen_to_stall(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        database = await app.database()
        test_clock.jump(0)
        await boot(database, "ana", lease=7200.0)
        await submit(database)
        await claim(database, "ana")
        await change(database, "UPDATE jobs SET checkpoint = 'reading'")

        test_clock.jump(1200)
        quiet = await app.explain(1)
        await change(
            database,
            "INSERT INTO events (job, seq, epoch, type, at)"
            " VALUES (1, 3, 1, 'stalled', (SELECT clock()))",
        )
        stalled = await app.explain(1)

        assert "running at reading on ana since 20" in quiet
        assert "without progress for 20 min" in quiet
        assert "stalled at reading on ana: no progress, seen at 20" in stalled


# --- resting, and over


async def test_parked_by_whom_and_why(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context) -> Any:
            return Park("May is spent", ParkReason.BUDGET)

        job = await app.submit(story)
        await app.run(until_idle=True, name="ana")

        said = await app.explain(job.id)

        assert "parked (budget) by ana (May is spent): the budget is spent, raise it" in said
        assert "resume or cancel it" in said


async def test_dead_in_the_words_of_its_error_and_what_to_do(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context) -> Any:
            raise Permanent("no such product", code="GONE")

        job = await app.submit(story)
        await drain(app)

        said = await app.explain(job.id)

        assert "dead (permanent, code GONE): no such product: " in said
        assert "`retry`, or `discard` it" in said
        await app.dead.discard(job.id)
        assert "no such product: put away at 20" in await app.explain(job.id)


async def test_dead_because_every_attempt_was_spent(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=Retry(attempts=2, base=0, cap=0))
        async def story(ctx: Context) -> Any:
            raise Transient("503")

        job = await app.submit(story)
        await drain(app)

        said = await app.explain(job.id)

        assert "dead (exhausted, code transient): 503: it failed as often as it may" in said


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("poison", "its runners died while it ran; look at its timeline"),
        (
            "deadline",
            "its deadline passed before it ended; `retry` gives it a life without one",
        ),
    ],
)
async def test_e10_poison_and_a_missed_deadline_have_advice_of_their_own(
    database_url, reason, advice
):
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database)
        await change(
            database,
            f"UPDATE jobs SET state = 'dead', reason = '{reason}', code = '{reason}'",  # noqa: S608
        )

        assert f"dead ({reason}, code {reason}): {advice}" in await app.explain(1)


async def test_done_skipped_and_canceled(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context, n: int) -> Any:
            return Skip("nothing new") if n else None

        done, skipped = await app.submit(story, 0), await app.submit(story, 1)
        await drain(app)
        canceled = await app.submit(story, 2)
        await app.cancel(canceled.id, actor="ana")

        assert ": done since 20" in await app.explain(done.id)
        assert ": skipped since 20" in await app.explain(skipped.id)
        assert "(nothing new): only `retry`" in await app.explain(skipped.id)
        assert ": canceled since 20" in await app.explain(canceled.id)
        assert ", by ana: only `retry` would run it again" in await app.explain(canceled.id)


async def test_a_time_to_come_is_told_in_universal_time(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context) -> Any: ...

        at = datetime(2100, 1, 1, 12, tzinfo=UTC)
        job = await app.submit(story, run_at=at)

        assert f"scheduled for {at:%Y-%m-%d %H:%M:%S} UTC" in await app.explain(job.id)


def test_e11_what_is_no_move_is_not_taken_for_the_last_one():
    text = text_of("last_move")

    assert [] == [
        event for event, to in LEADS_TO.items() if (to is None) != (f"'{event}'" in text)
    ]
