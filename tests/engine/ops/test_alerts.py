"""What somebody should know of is raised once and closed once, and looking for it costs the same for ever."""

import re
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from retoma import BadInput, Context, IllegalMove, NotFound, Permanent, Retoma
from retoma.db import Database, Transaction
from retoma.engine import store
from retoma.engine.handlers.kinds import Kinds, job
from retoma.engine.ops import alerts
from retoma.engine.ops.alerts import Alerts, HandOver, find, sentence
from retoma.engine.ops.leader_tasks import DutyLost, Fence
from retoma.engine.rules import settlement
from retoma.engine.store import Term
from retoma.engine.store import alerts as seen
from retoma.engine.store.alerts import BITE, Alert
from retoma.engine.testing import drain
from retoma.words import Language, tell
from tests.clock import TestClock
from tests.db.test_plans import ANALYZE, Explaining
from tests.engine.aids import boot, change, claim, eventually, rows, running, settle, submit
from tests.engine.costs.test_budgets import a_paying_kind
from tests.engine.ops.test_leader_tasks import end, take
from tests.engine.test_meter import as_any

ZONE = "America/Sao_Paulo"
Look = Callable[[], Awaitable[list[str]]]
MINUTE = 60.0


async def watching(app: Retoma, test_clock: TestClock) -> tuple[Database, Look]:
    """A database, and a look at it under the duty: what is in force then, by rule and subject."""
    await app.upgrade()
    test_clock.jump(0)  # on PostgreSQL: the schema is there now, and gets the clock of tests
    database = await app.database()
    await boot(database, "watcher", knows=[], lease=1_000_000.0)
    term = Term("alerts", "watcher", (await take(database, "watcher", ["alerts"]))["alerts"])

    async def look() -> list[str]:
        await Alerts(ZONE).chore(Fence(database, term))
        return [f"{each.rule} {each.subject}" for each in await app.alerts.list()]

    return database, look


async def history(database: Database) -> dict[str, int]:
    """How often each was raised and closed, as the audit log has it."""
    told = await rows(
        database, "SELECT verb, subject FROM audit WHERE verb LIKE 'alert.%' ORDER BY id"
    )
    return dict(Counter(f"{verb} {subject}" for verb, subject in told))


def once(what: str) -> dict[str, int]:
    return {f"alert.raised {what}": 1, f"alert.closed {what}": 1}


async def test_more_than_ten_stuck_jobs_are_told_of_until_they_move(database_url, test_clock):
    async with Retoma(database_url) as app:
        database, look = await watching(app, test_clock)
        await boot(database, "me", lease=1_000_000.0)
        await submit(database, 11)
        held = await claim(database, "me", slots=10)

        test_clock.jump(11 * MINUTE)
        assert [] == await look(), "ten are not more than ten"
        held += await claim(database, "me", slots=1)
        test_clock.jump(11 * MINUTE)
        for _ in range(2):
            assert ["HighStuckJobs work"] == await look()

        for each in held:
            await settle(database, "me", each.held, settlement.skipped("enough"))
        for _ in range(2):
            assert [] == await look()
        assert once("HighStuckJobs work") == await history(database)
        [found] = await app.alerts.list(in_force=False)
        assert "11 jobs of work are held and do not move" == sentence(found)
        assert ("warning", {"jobs": 11}) == (found.severity, found.details)


async def test_slow_work_is_told_of_until_a_quarter_of_an_hour_was_quicker(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        database, look = await watching(app, test_clock)
        await boot(database, "me", lease=1_000_000.0)
        for seconds, told in ((100, []), (200, ["SlowProcessing work"])):
            await submit(database)
            [held] = await claim(database, "me")
            test_clock.jump(seconds)
            await settle(database, "me", held.held, settlement.done("null"))
            test_clock.jump(0 if told else 20 * MINUTE)
            assert told == await look()

        test_clock.jump(20 * MINUTE)
        assert [] == await look()
        assert once("SlowProcessing work") == await history(database)


async def test_work_that_no_runner_knows_is_told_of_until_one_beats(database_url, test_clock):
    async with Retoma(database_url) as app:
        database, look = await watching(app, test_clock)
        await submit(database)
        assert [] == await look(), "whoever submits may be just about to start a runner"
        test_clock.jump(2 * MINUTE)
        assert ["WorkerHealthCheck work"] == await look()

        await boot(database, "me")
        assert [] == await look()
        test_clock.jump(14 * MINUTE)
        assert [] == await look(), "seed 000: fifteen minutes"
        test_clock.jump(2 * MINUTE)
        assert ["WorkerHealthCheck work"] == await look()
        assert ["critical"] == [each.severity for each in await app.alerts.list()]


async def test_dead_letters_are_told_of_while_they_are_new(database_url, test_clock):
    async with Retoma(database_url) as app:
        database, look = await watching(app, test_clock)

        @app.job
        async def work(ctx: Context, n: int) -> None:
            raise Permanent("no such shop", code="SHOP")

        await app.submit(work, 1)
        await drain(app)
        for _ in range(2):
            assert ["DeadLetters work"] == await look()
        test_clock.jump(20 * MINUTE)
        assert [] == await look()
        assert once("DeadLetters work") == await history(database)


async def test_a_finished_batch_is_told_of_each_time_it_finishes(database_url, test_clock):
    async with Retoma(database_url) as app:
        _, look = await watching(app, test_clock)

        @app.job
        async def work(ctx: Context, n: int) -> None:
            if ctx.generation == 1:
                raise Permanent("no such shop", code="SHOP")

        batch = await app.submit_many(work, range(3))
        await drain(app)
        [first] = [each for each in await app.alerts.list() if each.rule == "BatchFinished"]
        assert ("info", {"dead": 3}) == (first.severity, first.details)
        told = tell(sentence(first), Language.PT_BR)
        assert f"o lote {batch.id} terminou: 3 mortos" == told

        await batch.retry_failed()
        await drain(app)
        ever = [x for x in await app.alerts.list(in_force=False) if x.rule == "BatchFinished"]
        assert [({"done": 3}, True), ({"dead": 3}, False)] == [
            (each.details, each.is_open) for each in ever
        ]
        test_clock.jump(20 * MINUTE)
        assert [] == await look(), "it has been shown for long enough"


async def test_one_look_closes_all_that_were_shown_for_long_enough(database_url, test_clock):
    async with Retoma(database_url) as app:
        _, look = await watching(app, test_clock)

        @app.job
        async def work(ctx: Context, n: int) -> None: ...

        many = BITE + 5
        for n in range(many):
            await app.submit_many(work, [n])
        await drain(app)
        ever = await app.alerts.list(in_force=False, limit=200)
        assert [{"done": 1}] * many == [each.details for each in ever]
        assert {str(n + 1) for n in range(many)} == {each.subject for each in ever}

        test_clock.jump(20 * MINUTE)
        assert [] == await look()


async def test_an_open_breaker_is_told_of_after_five_minutes(database_url, test_clock):
    async with Retoma(database_url) as app:
        database, look = await watching(app, test_clock)
        await app.breakers.declare("shop")
        await app.breakers.open("shop", "down")
        test_clock.jump(4 * MINUTE)
        assert [] == await look()
        test_clock.jump(2 * MINUTE)
        assert ["BreakerOpen shop"] == await look()
        await app.breakers.close("shop")
        assert [] == await look()
        assert once("BreakerOpen shop") == await history(database)


async def test_a_runner_that_cannot_write_is_told_of_while_it_lives(database_url, test_clock):
    async with Retoma(database_url) as app:
        database, look = await watching(app, test_clock)
        await boot(database, "runner")

        def beat(trouble: str | None) -> Any:
            return lambda tx: store.beat_runner(
                tx, "runner", 60, reconnected=False, trouble=trouble
            )

        await database.write(beat("no room left in the database"), verb="beat")
        assert ["RunnerInTrouble runner"] == await look()
        await database.write(beat(None), verb="beat")
        assert [] == await look()
        assert once("RunnerInTrouble runner") == await history(database)


async def test_a_spent_budget_is_told_of_until_there_is_money_again(database_url, test_clock):
    async with Retoma(database_url) as app:
        _, look = await watching(app, test_clock)
        label = a_paying_kind(app, [])
        await app.budgets.set("2 USD", provider="acme", per="day")
        batch = await app.submit_many(label, range(3), budget="1 USD")
        await drain(app, slots=1)

        wanted = [f"BudgetSpent budget:batch:{batch.id}"]
        assert wanted == await look(), "of the provider's there is some left"
        await app.budgets.set("9 USD", batch=batch.id)
        await drain(app, slots=1)
        assert ["BudgetSpent budget:provider:acme:day"] == await look()
        await app.budgets.set("90 USD", provider="acme", per="day")
        await drain(app, slots=1)
        assert ["BatchFinished"] == [each.split()[0] for each in await look()]


async def test_a_runner_looks_by_itself(database_url, test_clock):
    async with Retoma(database_url) as app:
        await app.upgrade()
        test_clock.jump(0)
        await app.breakers.declare("shop")
        await app.breakers.open("shop", "down")
        test_clock.jump(10 * MINUTE)

        async def raised() -> list[Alert]:
            test_clock.jump(alerts.EVERY + 1)
            return await app.alerts.list()

        async with running(app, lease=1e6):
            [found] = await eventually(raised)
        assert "shop" == found.subject


async def test_whoever_lost_the_duty_raises_nothing(database_url, test_clock):
    async with Retoma(database_url) as app:
        database, look = await watching(app, test_clock)
        await submit(database)
        test_clock.jump(2 * MINUTE)
        await boot(database, "next", knows=[])
        await end(database, "watcher", "lost")
        await take(database, "next", ["alerts"])

        with pytest.raises(DutyLost):
            await look()
        assert [] == await app.alerts.list()


async def test_somebody_knows_and_it_is_written_down_who(database_url, test_clock):
    async with Retoma(database_url) as app:
        database, look = await watching(app, test_clock)
        await submit(database)
        test_clock.jump(2 * MINUTE)
        await look()
        [found] = await app.alerts.list()

        await app.alerts.acknowledge(found.id, actor="ana")
        again = await app.alerts.acknowledge(found.id, actor="rui")
        assert "ana" == again.acknowledged_by, "the first who says so stays"
        silent = await app.alerts.silence(found.id, "2h", actor="rui")
        assert (True, "rui") == (silent.silent, silent.silenced_by)
        told = await rows(
            database, "SELECT actor, verb FROM audit WHERE verb LIKE 'alert.%' ORDER BY id"
        )
        assert [
            ("alerts", "alert.raised"),
            ("ana", "alert.acknowledged"),
            ("rui", "alert.silenced"),
        ] == told

        await boot(database, "me")
        await look()
        with pytest.raises(IllegalMove, match=r"alert \d+ is closed"):
            await app.alerts.acknowledge(found.id)
        with pytest.raises(IllegalMove, match=r"alert \d+ is closed"):
            await app.alerts.silence(found.id, "1h")
        for bad in (999, 0, -1, 2**63):
            with pytest.raises(NotFound, match="there is no alert"):
                await app.alerts.acknowledge(bad)
        for bad_length in ("31d", 0, "soon"):
            with pytest.raises(BadInput):
                await app.alerts.silence(found.id, bad_length)


async def test_a_page_of_alerts_follows_the_other(database_url, test_clock):
    async with Retoma(database_url) as app:
        database, look = await watching(app, test_clock)
        for name in "abc":
            await submit(database, kind=name, queue=name)
        test_clock.jump(2 * MINUTE)
        await look()

        first = await app.alerts.list(limit=2)
        rest = await app.alerts.list(limit=2, before=first[-1].id)
        assert [["c", "b"], ["a"]] == [
            [each.subject for each in page] for page in (first, rest)
        ]
        with pytest.raises(BadInput):
            await app.alerts.list(limit=0)


# — handing over —


def telling() -> Kinds:
    kinds = Kinds()

    @job(name="retoma.notify.test")
    async def notify(ctx: Context, what: dict[str, object]) -> None: ...

    kinds.add(notify.kind)  # type: ignore[attr-defined]
    return kinds


async def handing(database: Database) -> Callable[[], Awaitable[list[str]]]:
    term = Term("notify", "watcher", (await take(database, "watcher", ["notify"]))["notify"])

    async def hand_over() -> list[str]:
        await HandOver(telling()).chore(Fence(database, term))
        found = await rows(database, "SELECT key FROM jobs WHERE key IS NOT NULL ORDER BY id")
        return [key for (key,) in found]

    return hand_over


async def test_every_change_is_handed_over_once(database_url, test_clock):
    async with Retoma(database_url) as app:
        database, look = await watching(app, test_clock)
        hand_over = await handing(database)
        assert [] == await hand_over()
        await submit(database)
        test_clock.jump(2 * MINUTE)
        await look()
        for _ in range(2):
            assert ["alert 1 raised"] == await hand_over()
        await boot(database, "me")
        await look()
        for _ in range(2):
            assert ["alert 1 raised", "alert 1 closed"] == await hand_over()


async def test_what_is_silent_is_told_to_nobody_and_stays_so_when_it_comes_again(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        database, look = await watching(app, test_clock)
        hand_over = await handing(database)
        await app.breakers.declare("shop")
        for opened in (1, 2, 3):
            await app.breakers.open("shop", "down")
            test_clock.jump(6 * MINUTE)
            await look()
            if opened == 1:
                await app.alerts.silence(1, "10m")
            told = await hand_over()
            await app.breakers.close("shop")
            await look()
            await hand_over()
        assert ["alert 3 raised"] == told, "the silence was over by then"
        assert ["alert 3 raised", "alert 3 closed"] == await hand_over()


async def test_what_is_old_is_news_to_nobody(database_url, test_clock):
    """Whoever names a destination today hears of today."""
    async with Retoma(database_url) as app:
        database, look = await watching(app, test_clock)
        await submit(database)
        test_clock.jump(2 * MINUTE)
        await look()
        test_clock.jump(2 * 3600)
        assert [] == await (await handing(database))()


async def test_who_cannot_be_told_is_not_told_of_that(database_url, test_clock):
    async with Retoma(database_url) as app:
        database, look = await watching(app, test_clock)
        await submit(database, kind="retoma.notify.test", queue="retoma.notify.test")
        test_clock.jump(2 * MINUTE)
        assert ["WorkerHealthCheck retoma.notify.test"] == await look()
        assert [] == await (await handing(database))()


# — cost —


async def test_a_look_reads_no_history(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await change(
            database,
            "INSERT INTO alerts (rule, subject, severity, details, since, closed_at,"
            " raised_told_at, closed_told_at)"
            " WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
            " SELECT 'DeadLetters', 'work', 'warning', '{}', (SELECT clock()), (SELECT clock()),"
            " (SELECT clock()), (SELECT clock()) FROM n",
        )
        if database.dialect == "postgres":
            await database.write(lambda tx: tx.run(ANALYZE), verb="test")

        plans: dict[str, list[str]] = defaultdict(list)

        def explained(tx: Transaction) -> None:
            explaining = as_any(Explaining(tx, plans))
            find(explaining, ZONE)
            seen.open_causes(explaining, but=seen.Rule.BATCH)
            seen.any_shown(explaining, seen.Rule.BATCH, 900.0)
            seen.any_untold(explaining, 3600.0)
            seen.may_alert(explaining, 900.0)
            seen.list_alerts(explaining, in_force=True, before=None, limit=50)

        await database.write(explained, verb="explain")
        whole = re.compile(
            r"Seq Scan on alerts|SCAN (a|alerts)$|SCAN (a|alerts) USING.*PRIMARY"
        )
        told = [f"{verb}: {line}" for verb, lines in plans.items() for line in lines]
        assert [] == [line for line in told if whole.search(line)]
        assert any("alerts_open" in line for line in told)
