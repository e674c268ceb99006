"""What is counted for whoever asks again and again equals what happened, and costs the same for ever."""

import asyncio
import math
import re
from collections import Counter, defaultdict
from typing import Any

import pytest

from retoma import Context, Park, Permanent, Retoma, Skip, Snooze, Transient
from retoma.db import Database, Transaction, adhoc
from retoma.engine import query, store
from retoma.engine.query import Meter, read_meter
from retoma.engine.rules import settlement
from retoma.engine.rules.events import End
from retoma.engine.rules.states import State
from retoma.engine.testing import drain
from tests.db.test_plans import ANALYZE, Explaining, postgres_scans
from tests.engine.aids import AT_ONCE, boot, change, claim, running, settle, submit

ZONE = "America/Sao_Paulo"
ENDED = adhoc(
    "SELECT j.kind, CASE WHEN a.ended_at IS NULL THEN 'running' ELSE a.ended END, count(*)"
    " FROM attempts a JOIN jobs j ON j.id = a.job GROUP BY 1, 2"
)


async def fold(database: Database) -> None:
    while await database.write(store.fold_tallies, verb="fold"):
        pass


async def meter_of(database: Database) -> Meter:
    return await database.read(lambda tx: read_meter(tx, ZONE))


def ends(meter: Meter) -> dict[tuple[str, str], int]:
    """All that was claimed, by how it ended or that it runs."""
    told = {(kind, str(end)): meter.ended(kind, end) for kind in meter.kinds for end in End}
    told |= {
        (kind, "running"): meter.jobs.get((kind, State.RUNNING), 0) for kind in meter.kinds
    }
    return {key: n for key, n in told.items() if n}


def as_events_have_it(tx: Transaction) -> dict[tuple[str, str], int]:
    return {(kind, ended): int(n) for kind, ended, n in tx.all(ENDED)}


HOWS = ("done", "dies", "fails", "snoozes", "skips", "parks")


def every_end(app: Retoma, gate: asyncio.Event) -> Any:
    met: set[int] = set()

    @app.job(name="work", retry=AT_ONCE)
    async def work(ctx: Context, how: str) -> Any:
        if how == "holds":
            await gate.wait()
        if how == "dies":
            raise Permanent("no such shop", code="SHOP")
        if how == "fails" and ctx.attempt < 3:
            raise Transient("busy")
        if how == "snoozes" and ctx.job not in met:
            met.add(ctx.job)
            return Snooze(0)
        return {"skips": Skip("nothing to do"), "parks": Park("config")}.get(how, how)

    return work


async def test_w3_every_claim_has_one_end_at_every_instant_while_folding_goes_on(database_url):
    """Seed 002's identity: claimed is what ended, by each end, and what is in flight."""
    async with Retoma(database_url) as app, Retoma(database_url) as other:
        gate = asyncio.Event()
        work = every_end(app, gate)
        await app.upgrade()
        watcher, folder = await other.database(), await app.database()

        def both(tx: Transaction) -> tuple[Meter, dict[tuple[str, str], int]]:
            return read_meter(tx, ZONE), as_events_have_it(tx)

        looks = 0
        async with running(app, slots=10):
            batch = await app.submit_many(work, [*HOWS * 25, "holds"])
            async with asyncio.timeout(40):
                while (await batch.counts()).keys() & {State.WAITING, State.RUNNING}:
                    meter, truth = await watcher.read(both)
                    assert truth == ends(meter)
                    assert sum(truth.values()) == meter.happened.get(("work", "claimed"), 0)
                    await folder.write(store.fold_tallies, verb="fold")
                    looks += 1
                    if looks == 5:
                        gate.set()

        for folded in (False, True):
            if folded:
                await fold(folder)
            meter, truth = await watcher.read(both)
            assert truth == ends(meter)
            assert {"done": 76, "skipped": 25, "parked": 25, "failed": 75, "snoozed": 25} == {
                end: n for (_, end), n in truth.items()
            }
            assert 50 == meter.happened["work", "failed"], "attempts that another followed"
            assert 25 == meter.happened["work", "buried"] == meter.dead["SHOP"]
            assert 151 == meter.happened["work", "submitted"]
            assert 226 == meter.happened["work", "claimed"]


async def test_what_each_runner_did_is_its_own_and_goes_with_its_row(database_url, test_clock):
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database, 4)
        for name in ("gone-by", "me"):
            await boot(database, name)
        await claim(database, "gone-by", slots=2)
        await change(database, "UPDATE runners SET state = 'lost' WHERE boot = 'gone-by'")
        await database.write(lambda tx: store.take_back(tx, "me"), verb="take_back")
        [held] = [each.held for each in await claim(database, "me")]
        await settle(database, "me", held, settlement.done("1"))
        assert None is await settle(database, "gone-by", held, settlement.done("2"))
        await database.write(
            lambda tx: store.count_refused(tx, "gone-by", {"work": 1}), verb="count"
        )

        for folded in (False, True):
            if folded:
                await fold(database)
            did = {key: sum_.n for key, sum_ in (await meter_of(database)).did.items()}
            assert {
                ("gone-by", "claimed"): 2,
                ("gone-by", "refused"): 1,
                ("me", "lost"): 2,
                ("me", "claimed"): 1,
                ("me", "done"): 1,
            } == did

        test_clock.jump(2 * 86_400)
        await database.write(store.retire_own, verb="retire")

        assert {"me"} == {whose for whose, _ in (await meter_of(database)).did}


async def test_a_suspect_that_is_buried_is_a_lost_claim_and_no_recovery(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database, 2)
        for name in ("gone-by", "me"):
            await boot(database, name)
        await claim(database, "gone-by", slots=2)
        await change(database, "UPDATE jobs SET lost = 2 WHERE id = 1")
        await change(database, "UPDATE runners SET state = 'lost' WHERE boot = 'gone-by'")

        await database.write(lambda tx: store.take_back(tx, "me"), verb="take_back")

        meter = await meter_of(database)
        assert (1, 1) == (meter.happened["work", "lost"], meter.happened["work", "poisoned"])
        assert 2 == meter.ended("work", End.LOST)
        assert await database.read(as_events_have_it) == ends(meter)


async def test_how_long_attempts_took_is_kept_for_ever_by_kind_and_event(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "me", lease=1e6)
        await submit(database, 3)
        for seconds, end in ((70, settlement.done("1")), (140, settlement.done("1"))):
            [held] = [each.held for each in await claim(database, "me")]
            test_clock.jump(seconds)
            await settle(database, "me", held, end)
            await fold(database)
        await claim(database, "me")
        test_clock.jump(40 * 86_400)
        await database.write(store.retire_own, verb="retire")

        [[first, second]] = [
            sorted(buckets.items()) for buckets in (await meter_of(database)).lasted.values()
        ]

        assert (16, 1) == (first[0], first[1].n), "65 to 131 seconds"
        assert (17, 1) == (second[0], second[1].n), "131 to 262 seconds"
        assert first[1].ms >= 70_000
        assert second[1].ms >= 140_000


# — what waits, and who could take it —


async def test_e28_the_oldest_that_is_due_is_told_for_each_queue_whatever_its_priority(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database, 1, kind="slow", priority=9)
        test_clock.jump(1_000)
        await submit(database, 50, kind="slow", priority=1)
        await submit(database, 1, kind="later", delay=500.0)
        await submit(database, 1, kind="quick")

        early = await meter_of(database)
        test_clock.jump(600)
        late = await meter_of(database)
        await change(database, "UPDATE jobs SET aside = 'pool:x' WHERE kind = 'quick'")
        await change(database, "UPDATE jobs SET lost = 2 WHERE priority = 9")
        suspected = await meter_of(database)

        assert {"slow": 1_000, "quick": 0} == ages(early)
        assert {"slow": 1_600, "quick": 600, "later": 100} == ages(late)
        assert {"slow": 1_600, "later": 100} == ages(suspected), "aside is told by its gate"


def ages(meter: Meter) -> dict[str, int]:
    return {each.queue: round(each.oldest, -2) for each in meter.lines}  # type: ignore[misc]


async def test_the_last_beat_of_whoever_knows_the_work_is_told(database_url, test_clock):
    """A server's own runner beats too, and knows nothing of this."""
    async with Retoma(database_url) as app:
        database = await app.database()
        await submit(database)
        alone = await meter_of(database)
        await boot(database, "me")
        test_clock.jump(1_000)
        await boot(database, "server", knows=["retoma.order@1"])
        left = await meter_of(database)
        await boot(database, "fresh")
        found = await meter_of(database)

        [never], [old], [new] = alone.lines, left.lines, found.lines
        assert math.inf == never.beat
        assert 1_000 == pytest.approx(old.beat, abs=60)
        assert 0 == pytest.approx(new.beat, abs=60)


async def test_jobs_that_do_not_move_are_counted_by_kind(database_url, test_clock):
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "me", lease=1e6, knows=["work@1", "other@1"])
        for kind in ("work", "other"):
            await submit(database, 3, kind=kind)
        await claim(
            database, "me", slots=6, queues=["work", "other"], knows=["work@1", "other@1"]
        )
        at_once = await meter_of(database)
        test_clock.jump(query.QUIET + 1)
        await change(
            database,
            "UPDATE jobs SET progress_at = (SELECT clock()), checkpoint = 'read' WHERE id = 1",
        )
        quiet = await meter_of(database)
        await change(database, "UPDATE runners SET state = 'lost'")
        orphans = await meter_of(database)

        assert {"work": 0, "other": 0} == at_once.stuck
        assert {("work", ""): 3, ("other", ""): 3} == at_once.held
        assert {("work", "read"): 1, ("work", ""): 2, ("other", ""): 3} == quiet.held
        assert {"work": 2, "other": 3} == quiet.stuck
        assert {"work": 3, "other": 3} == orphans.stuck


async def test_things_limits_breakers_and_money_are_told_as_they_stand(database_url):
    async with Retoma(database_url) as app:

        @app.job(name="label", limit=3, application="quotes")
        async def label(ctx: Context, n: int) -> int:
            ctx.cost(provider="acme", usd="0.25", tokens=10)
            return n

        await app.pools.declare("proxies", {"a": 1, "b": 2, "c": 3, "d": 4})
        database = await app.database()
        await app.pools.switch("proxies", ["a"], on=False, reason="old")
        await change(
            database,
            "UPDATE pool_items SET scope = 'release', job = 1, epoch = 1, generation = 1"
            " WHERE name = 'b'",
        )
        await change(
            database,
            "UPDATE pool_items SET ready_at = (SELECT clock_in(60.0)) WHERE name = 'c'",
        )
        await app.breakers.declare("shop")
        await app.breakers.open("shop", "down")
        await app.budgets.set("1 USD", provider="acme", per="day")
        await app.budgets.set("9 BRL", application="quotes", per="month")
        batch = await app.submit_many(label, range(3), budget="5 USD")
        await drain(app)

        for folded in (False, True):
            if folded:
                await database.write(
                    lambda tx: store.budget.fold_charges(tx, app.timezone, actor="t"),
                    verb="fold",
                )
            meter = await app.insights.metrics()
            stands = {stands: n for (_, stands), n in meter.pools.items()}
            assert {"off": 1, "held": 1, "resting": 1, "free": 1} == stands
            assert [("shop", "open")] == [(each.name, each.state) for each in meter.breakers]
            assert [("kind:label", 3, 0)] == [
                (each.key, each.cap, each.used) for each in meter.limits
            ]
            [spent] = meter.costs
            assert ("label", "acme", "0.75") == (
                spent.name,
                spent.provider,
                f"{spent.spent.usd:.2f}",
            )
            assert {
                "budget:application:quotes:month": 0,
                "budget:provider:acme:day": 750_000_000,
            } == {each.budget.gate: each.spent.nanos for each in meter.budgets}, batch.id


# — what it costs —

HISTORY = ("j", "jobs", "events", "steps", "counts", "costs", "budgets", "pace", "batches")


async def test_a_reading_asks_the_same_whatever_history_there_is(database_url):
    """The same statements, and none that reads a table which grows with history from end to end."""
    async with Retoma(database_url) as app:
        database = await app.database()
        await boot(database, "me")
        await submit(database, 20)
        few = await statements_of_a_reading(database)
        await grow(database, 3_000)
        many = await statements_of_a_reading(database)

        assert few == many
        assert 13 > sum(few.values())
        for analyze in (False, True):
            if analyze:
                await database.write(lambda tx: tx.run(ANALYZE), verb="test")
            assert [] == whole_tables(database.dialect, await plans_of_a_reading(database))


async def plans_of_a_reading(database: Database) -> dict[str, list[str]]:
    plans: dict[str, list[str]] = defaultdict(list)

    def explained(tx: Transaction) -> None:
        read_meter(as_any(Explaining(tx, plans)), ZONE)

    await database.write(explained, verb="explain")
    return plans


def whole_tables(dialect: str, plans: dict[str, list[str]]) -> list[str]:
    if dialect == "postgres":
        seq = re.compile(rf"Seq Scan on ({'|'.join(HISTORY[1:])})\b")
        told = [f"{verb}: {line}" for verb, lines in plans.items() for line in lines]
        return [*filter(seq.search, told), *postgres_scans(plans)]
    return [
        f"{verb}: {line}"
        for verb, lines in plans.items()
        for line in lines
        if line.startswith("SCAN ") and line.split()[1] in HISTORY
    ]


async def grow(database: Database, n: int) -> None:
    """Jobs that ended, and as many batches, each with its ledger, its costs and its budget."""
    await submit(database, n, kind="old")
    old = "FROM jobs WHERE kind = 'old'"
    for sql in (
        "UPDATE jobs SET state = 'done', turn = NULL WHERE kind = 'old' AND id % 3 > 0",
        "UPDATE jobs SET state = 'dead', turn = NULL, code = 'X' WHERE kind = 'old' AND id % 3 = 0",
        "INSERT INTO budgets (gate, scope, name, per, nanos, currency) SELECT"
        f" 'budget:batch:' || id, 'batch', CAST(id AS text), 'whole', 1, 'usd' {old}",
        f"INSERT INTO counts (batch, kind, state, code, n) SELECT id, kind, state, '', 1 {old}",
        "INSERT INTO costs (scope, name, period, provider, model, unit, sort, amount) SELECT"
        f" 'batch', CAST(id AS text), '', 'acme', '', 'usd', 'spent', 1 {old}",
    ):
        await change(database, sql)
    await fold(database)


async def statements_of_a_reading(database: Database) -> Counter[str]:
    asked: Counter[str] = Counter()

    def counted(tx: Transaction) -> None:
        read_meter(as_any(Counting(tx, asked)), ZONE)

    await database.read(counted)
    return asked


class Counting:
    """A transaction that counts what it is asked."""

    def __init__(self, inner: Transaction, asked: Counter[str]) -> None:
        self.dialect = inner.dialect
        self._inner = inner
        self._asked = asked

    def all(self, statement: Any, **params: Any) -> list[Any]:
        self._asked[statement.name] += 1
        return self._inner.all(statement, **params)

    def one(self, statement: Any, **params: Any) -> Any:
        self._asked[statement.name] += 1
        return self._inner.one(statement, **params)


def as_any(tx: Any) -> Any:
    return tx


async def test_what_is_tried_again_in_bulk_has_not_waited_since_it_was_first_submitted(
    database_url, test_clock
):
    async with Retoma(database_url) as app:

        @app.job(name="work")
        async def work(ctx: Context, n: int) -> None:
            raise Permanent("no")

        batch = await app.submit_many(work, range(3))
        await drain(app)
        test_clock.jump(9_000)

        await batch.retry_failed()

        [line] = (await app.insights.metrics()).lines
        assert 0 == pytest.approx(line.oldest, abs=60)
