"""Times that somebody wrote by plain SQL, far outside any calendar: everything is still listed and claimed."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from math import inf, nan
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import structlog

from retoma import (
    BadInput,
    Context,
    Retoma,
    Retry,
    Skip,
    Snooze,
    State,
    Transient,
    db,
)
from retoma.db import adhoc
from retoma.db.rows import EARLIEST, LATEST
from retoma.engine.handlers.kinds import job
from retoma.engine.ops.retention import Keep
from retoma.engine.query import AuditSearch, Search
from retoma.engine.rules.errors import Throttled
from retoma.engine.run.runner_options import RunnerOptions
from retoma.engine.testing import drain
from tests.engine.aids import change, eventually, rows, running

COLUMNS = re.findall(
    r"^(\w+)\.(\w+) timestamp with time zone",
    (Path(__file__).parents[1] / "db" / "schema.postgres.sql").read_text(),
    re.MULTILINE,
)
FAR = {
    "sqlite": (2**63 - 1, -(2**63), 10**18, -(10**18)),
    "postgres": ("'infinity'", "'-infinity'", "'20000-01-01Z'", "'4000-01-01Z BC'"),
}


async def progress(app: Retoma) -> list[Any]:
    return [await batch.progress() for batch in await app.batches.list()]


async def of_each_job(app: Retoma, name: str) -> list[Any]:
    return [await attrgetter(name)(app)(job) for job in range(1, 7)]


READS: dict[str, Callable[[Retoma], Awaitable[Any]]] = {
    "jobs": lambda app: app.jobs(),
    "search": lambda app: app.search(Search()),
    "count": lambda app: app.count(Search()),
    "counts": lambda app: app.insights.counts(),
    "by_kind": lambda app: app.insights.counts_by_kind(),
    "dead_codes": lambda app: app.dead.codes(),
    "funnel": lambda app: app.insights.funnel(),
    "stuck": lambda app: app.insights.stuck(),
    "throughput": lambda app: app.insights.throughput(),
    "durations": lambda app: app.insights.durations(),
    "runners": lambda app: app.runners.list(),
    "ready": lambda app: app.ready(),
    "meter": lambda app: app.insights.metrics(),
    "batches": lambda app: app.batches.list(),
    "progress": progress,
    "dead": lambda app: app.dead.list(),
    "dead_groups": lambda app: app.dead.groups(Search()),
    "audit": lambda app: app.audit(AuditSearch()),
    "alerts": lambda app: app.alerts.list(in_force=False),
    "schedules": lambda app: app.schedules.list(),
    "disk": lambda app: app.insights.disk(),
    "limits": lambda app: app.limits.list(),
    "pools": lambda app: app.pools.list(),
    "items": lambda app: app.pools.items("proxies"),
    "rates": lambda app: app.rates.list(),
    "breakers": lambda app: app.breakers.list(),
    "knobs": lambda app: app.knobs.all(),
    "pauses": lambda app: app.pauses.all(),
    "costs": lambda app: app.costs.total(),
    "budgets": lambda app: app.budgets.list(),
    "prices": lambda app: app.prices.list(),
    "exchange": lambda app: app.prices.exchange(),
    "reuse": lambda app: app.reuse.list(),
    **{
        f"{name} of a job": lambda app, name=name: of_each_job(app, name)  # type: ignore[misc]
        for name in ("get", "see", "explain", "events", "attempts", "steps", "evidence.list")
    },
}


@asynccontextmanager
async def everything(url: str) -> AsyncIterator[Retoma]:
    """An app with a row in nearly every table."""
    async with Retoma(url) as app:

        @app.job(retry=Retry(attempts=1), limit=5)
        async def work(ctx: Context, how: str) -> Any:
            await ctx.step("look", looked, reuse="looked")
            ctx.cost(provider="acme", usd="0.25")
            await ctx.progress(0.5)
            await ctx.attach("page", b"...", media="text/plain")
            if how == "fail":
                raise Transient("no")
            return Skip("no need") if how == "skip" else how

        app.schedule("nightly", work, cron="0 3 * * *", payload="tick")
        await app.pools.declare("proxies", {"a": 1, "b": 2}, cool_down=5)
        await app.breakers.declare("shop")
        await app.breakers.open("shop", "down")
        await app.rates.set("acme", 5)
        await app.budgets.set("9 USD", provider="acme", per="day")
        await app.prices.set("acme", "token", "1")
        await app.prices.set_exchange("5")
        await app.submit_many(work, ["done", "skip", "fail"], name="three")
        await app.submit(work, "late", delay=3600, deadline=7200)
        await app.submit(work, "later", delay=3600)
        await drain_what_is_due(app)
        batch = await app.submit_many(work, ["paused"], name="paused")
        await batch.pause()
        await app.pauses.pause("kind", "work", why="later")
        yield app


async def looked() -> str:
    return "seen"


async def drain_what_is_due(app: Retoma) -> None:
    async with running(app):
        await eventually(lambda: all_ended(app))


async def all_ended(app: Retoma) -> bool:
    counts = await app.insights.counts()
    return 3 == sum(counts.get(state, 0) for state in (State.DONE, State.SKIPPED, State.DEAD))


async def forget_that_events_never_change(database: db.Database) -> None:
    if database.dialect == "postgres":
        await change(database, "ALTER TABLE retoma.events DISABLE TRIGGER USER")
        return
    found = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'events'"
    for (name,) in await rows(database, found):
        await change(database, f"DROP TRIGGER {name}")


async def put(database: db.Database, table: str, column: str, value: object) -> bool:
    """Whether every row has it now; some columns stand in keys, where all cannot be the same."""
    name = table if database.dialect == "sqlite" else f"retoma.{table}"
    change = adhoc(f"UPDATE {name} SET {column} = {value} RETURNING 1")  # noqa: S608
    try:
        return bool(await database.write(lambda tx: tx.all(change), verb="test"))
    except db.DatabaseError:
        return False


@pytest.mark.parametrize("place", range(4))
async def test_d6_no_time_in_any_column_keeps_a_list_from_being_read(database_url, place):
    async with everything(database_url) as app:
        database = await app.database()
        value = FAR[database.dialect][place]
        await forget_that_events_never_change(database)
        before = {name: await read(app) for name, read in READS.items()}

        put_in = [each for each in COLUMNS if await put(database, each[0], each[1], value)]
        after = {name: await outcome(read(app)) for name, read in READS.items()}

        assert len(put_in) > 30, put_in
        assert ("events", "at") in put_in
        assert {} == {name: each for name, each in after.items() if isinstance(each, Exception)}
        assert len(before["jobs"]) == len(after["jobs"])
        ends: set[datetime] = {job.run_at for job in after["jobs"] if job.run_at is not None}
        assert {LATEST if place % 2 == 0 else EARLIEST} == ends


@pytest.mark.parametrize("place", range(4))
async def test_d6_jobs_with_such_times_keep_nobody_from_claiming_others(database_url, place):
    async with Retoma(database_url) as app:

        @app.job
        async def work(ctx: Context, n: int) -> int:
            return n

        far = [await app.submit(work, n, delay=0 if n < 4 else 3600) for n in range(8)]
        database = await app.database()
        value = FAR[database.dialect][place]
        for column in ("deadline", "created_at", "started_at", "progress_at"):
            assert await put(database, "jobs", column, value)
        others = [await app.submit(work, n) for n in range(4)]
        for job in far[6:]:
            await change_one(database, job.id, value)

        with structlog.testing.capture_logs() as logged:
            async with running(app, tick=0.5):
                for job in [*far[:4], *others]:
                    await eventually(lambda job=job: ended(app, job.id), within=20)  # type: ignore[misc]

        how = State.DONE if place % 2 == 0 else State.DEAD  # its deadline is far, or long past
        assert {how} == {(await app.get(job.id)).state for job in far[:4]}
        assert {State.DONE} == {(await app.get(job.id)).state for job in others}
        assert [] == [each for each in logged if each["event"] == "runner.trouble"]


async def change_one(database: db.Database, job: int, value: object) -> None:
    name = "jobs" if database.dialect == "sqlite" else "retoma.jobs"
    change = adhoc(f"UPDATE {name} SET run_at = {value} WHERE id = {job}")  # noqa: S608
    await database.write(lambda tx: tx.run(change), verb="test")


async def ended(app: Retoma, job: int) -> bool:
    return (await app.get(job)).ended


async def outcome(asked: Awaitable[Any]) -> Any:
    try:
        return await asked
    except Exception as error:  # noqa: BLE001 — told by what it is
        return error


# — at the door —

CENTURY = datetime.now(UTC) + timedelta(days=36_530)  # noqa: TID251 — by the clock of this host
WRONG: dict[str, Any] = {"far": 1e12, "endless": inf, "none": nan, "negative": -1}


@pytest.mark.parametrize("name", WRONG)
async def test_d6_a_submission_so_far_away_is_refused_and_writes_nothing(database_url, name):
    async with Retoma(database_url) as app:

        @app.job
        async def work(ctx: Context, n: int) -> int:
            return n

        for how in ({"delay": WRONG[name]}, {"deadline": WRONG[name]}):
            with pytest.raises(BadInput, match="length of time"):
                await app.submit(work, 1, **how)
            with pytest.raises(BadInput, match="length of time"):
                await app.submit_many(work, [1, 2], **how)
        for at in (
            CENTURY,
            datetime(1969, 12, 31, tzinfo=UTC),
            datetime.max.replace(tzinfo=UTC),
        ):
            with pytest.raises(BadInput, match="too far away"):
                await app.submit(work, 1, run_at=at)

        assert [] == await app.jobs()


@pytest.mark.parametrize("name", WRONG)
async def test_d6_a_snooze_so_long_is_a_mistake_of_its_job_and_of_no_other(database_url, name):
    async with Retoma(database_url) as app:

        @app.job
        async def sleeps(ctx: Context) -> Any:
            return Snooze(WRONG[name])

        @app.job
        async def pauses(ctx: Context) -> Any:
            await ctx.pause(WRONG[name])

        @app.job
        async def work(ctx: Context, n: int) -> int:
            return n

        wrong = [await app.submit(sleeps), await app.submit(pauses)]
        batch = await app.submit_many(work, range(3))
        await drain(app)

        assert {State.DONE: 3} == await batch.counts()
        assert [(State.DEAD, "bad_input")] * 2 == [
            (job.state, job.code) for job in [await app.get(each.id) for each in wrong]
        ]


@pytest.mark.parametrize("name", WRONG)
def test_d6_no_rule_takes_such_a_time(name):
    value = WRONG[name]
    for rule in (
        lambda: Retry(base=value, cap=value),
        lambda: Retry(cap=value, base=0 if value != -1 else 1),
        lambda: Keep(done=value),
        lambda: RunnerOptions(tick=value),
        lambda: RunnerOptions(grace=value),
        lambda: RunnerOptions(lease=value, beat=value / 6),
        lambda: Retoma("sqlite:///x.db", patience=value),
        lambda: job(timeout=value)(unchanged),
    ):
        with pytest.raises(BadInput):
            rule()


async def unchanged(ctx: Context) -> None: ...


@pytest.mark.parametrize("wait", [1e300, inf, nan, -1e300, 1e12])
async def test_d6_what_a_stranger_asks_for_is_at_most_what_we_put_up_with(database_url, wait):
    async with Retoma(database_url) as app:

        @app.job(retry=Retry(attempts=2, base=60, cap=60))
        async def work(ctx: Context) -> None:
            raise Throttled("slow down", retry_after=wait)

        made = await app.submit(work)
        async with running(app):
            await eventually(lambda: waits(app, made.id))

        seen = await app.get(made.id)
        assert seen.run_at is not None
        assert made.created_at is not None
        assert seen.run_at - made.created_at < timedelta(minutes=20)


async def waits(app: Retoma, job: int) -> bool:
    seen = await app.get(job)
    return seen.failures == 1 and seen.state is State.WAITING
