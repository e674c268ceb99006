"""A claim costs the same with 200 kinds as with one, whether one of them has jobs or all (E28).

Counted in work, not in time: steps of SQLite's machine; scans and rows of PostgreSQL's tables.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import psycopg
import pytest

from retoma import Context, Retoma
from retoma.db import Call, Database, Row, Transaction, adhoc
from retoma.engine.ports import Clock
from retoma.engine.run.claim_cursor import ClaimRequest, QueueCursor
from retoma.engine.store import NOTHING_BEFORE, Found
from retoma.engine.store.claim import NEVER_PAUSED
from retoma.engine.testing import FakeClock
from tests.engine import aids

KINDS = [f"kind{n:03}" for n in range(200)]
CLAIMS = 40
FREE = 20
STEPS = 10  # of SQLite's machine between two looks at the count
TOUCHED = adhoc(
    "SELECT 0",
    "SELECT sum(pg_stat_get_xact_numscans(oid) + pg_stat_get_xact_tuples_returned(oid)"
    " + pg_stat_get_xact_tuples_fetched(oid) + pg_stat_get_xact_tuples_inserted(oid)"
    " + pg_stat_get_xact_tuples_updated(oid)) FROM pg_class"
    " WHERE relnamespace = CAST('retoma' AS regnamespace)",
)


class OneByOne:
    """A transaction that stays open: the last statements of a claim do not end it."""

    def __init__(self, inner: Transaction) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def finish(self, *calls: Call) -> list[list[Row]]:
        return [self._inner.all(call.statement, **call.params) for call in calls]


class Claimer:
    """Claims as a runner of these kinds does, and counts what its claims cost the database."""

    def __init__(self, database: Database, kinds: Sequence[str], clock: Clock) -> None:
        self._database = database
        self._kinds = kinds
        self._cursor = QueueCursor(clock, kinds)
        self.work = 0

    async def claim(self, free: int = FREE) -> list[str]:
        """The kinds of the jobs that it claimed."""
        found = await self._claim(free)
        while self._cursor.claimed(found, free) and not found.claims:
            found = await self._claim(free)
        return [claim.kind for claim in found.claims]

    async def _claim(self, free: int) -> Found:
        choice = self._cursor.choose(free, past_gates=False)
        request = ClaimRequest(
            boot="me",
            queues=self._kinds,
            choice=choice,
            after=dict.fromkeys(choice.queues, NOTHING_BEFORE),
            holding={},
            knows=[f"{kind}@1" for kind in self._kinds],
            free=free,
            suspects=1,
            promote=False,
            pauses=NEVER_PAUSED,
            meet=0,
            holds={},
            dice=1,
        )
        count = self._steps if self._database.dialect == "sqlite" else self._rows
        return await self._database.write(lambda tx: count(tx, request.claim), verb="claim")

    def _steps(self, tx: Any, claim: Callable[[Transaction], Found]) -> Found:
        def count() -> bool:
            self.work += STEPS
            return False

        tx._connection.set_progress_handler(count, STEPS)
        try:
            return claim(tx)
        finally:
            tx._connection.set_progress_handler(None)

    def _rows(self, tx: Any, claim: Callable[[Transaction], Found]) -> Found:
        before = tx.one(TOUCHED)[0]
        found = claim(cast("Transaction", OneByOne(tx)))
        self.work += int(tx.one(TOUCHED)[0] - before)
        return found


@asynccontextmanager
async def claiming(url: str) -> AsyncIterator[Database]:
    """A database with a runner of KINDS, made anew: dead rows that a test before left are touched as well."""
    if url.startswith("postgresql:"):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS retoma CASCADE")
    async with Retoma(url) as app:
        await app.upgrade()
        database = await app.database()
        await aids.boot(database, knows=[f"{kind}@1" for kind in KINDS])
        if url.startswith("postgresql:"):
            # A vacuum that comes between the two counts would change what one of them touches.
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("ALTER TABLE retoma.jobs SET (autovacuum_enabled = off)")
                connection.execute("ALTER TABLE retoma.steps SET (autovacuum_enabled = off)")
        yield database


async def cost_of_claims(database: Database, kinds: Sequence[str]) -> int:
    claimer = Claimer(database, kinds, FakeClock())
    for _ in range(CLAIMS):
        assert FREE == len(await claimer.claim())
    return claimer.work


@pytest.mark.parametrize("busy", [1, len(KINDS)])
async def test_e28_a_claim_with_200_kinds_costs_what_it_costs_with_one(database_url, busy):
    # Each in a database made anew: whatever keeps dead rows from being removed, both leave as many.
    async with claiming(database_url) as database:
        await aids.submit(database, CLAIMS * FREE, kind="kind000")
        one = await cost_of_claims(database, KINDS[:1])
    async with claiming(database_url) as database:
        for kind in KINDS[:busy]:
            await aids.submit(database, CLAIMS * FREE // busy + FREE, kind=kind)
        many = await cost_of_claims(database, KINDS)

    print(f"{many / one:.2f} times the work with {len(KINDS)} kinds, {busy} of them with jobs")
    assert 0 < many <= 1.3 * one, f"{one} with one kind, {many} with {len(KINDS)}"


async def test_a_claim_fills_its_slots_from_as_many_kinds_as_it_takes(database_url):
    async with claiming(database_url) as database:
        for kind in KINDS:
            await aids.submit(database, 1, kind=kind)
        claimer = Claimer(database, KINDS, FakeClock())

        claimed = [kind for _ in range(len(KINDS)) for kind in await claimer.claim()]

        assert KINDS == sorted(claimed)
        assert [] == await claimer.claim()


async def test_e28_a_better_priority_is_claimed_a_second_later_at_most(database_url):
    clock = FakeClock()
    async with claiming(database_url) as database:
        for kind in KINDS:
            await aids.submit(database, FREE, kind=kind)
        claimer = Claimer(database, KINDS, clock)
        await claimer.claim()
        await aids.submit(database, FREE, kind="kind150", priority=-1)

        clock.advance(1.01)

        assert ["kind150"] * FREE == await claimer.claim()


async def test_e28_every_kind_gets_its_turn_while_all_have_jobs(database_url):
    async with claiming(database_url) as database:
        for kind in KINDS:
            await aids.submit(database, 2 * FREE, kind=kind)
        claimer = Claimer(database, KINDS, FakeClock())

        claimed: Counter[str] = Counter()
        for _ in KINDS:
            claimed.update(await claimer.claim())

        assert dict.fromkeys(KINDS, FREE) == claimed


async def test_a_runner_of_many_kinds_wakes_for_a_job_of_any(database_url):
    app, ran = Retoma(database_url), asyncio.Queue[str]()

    async def work(_: Context, kind: str) -> None:
        await ran.put(kind)

    for kind in KINDS:
        app.job(name=kind)(work)
    async with app:
        await app.upgrade()
        for kind in KINDS:
            await app.submit(kind, kind)
        async with aids.running(app, tick=600.0), asyncio.timeout(60):
            assert KINDS == sorted([await ran.get() for _ in KINDS])
            for kind in ("kind150", "kind007"):
                await app.submit(kind, kind)
                assert kind == await ran.get()
            await app.submit("kind042", "kind042", delay=0.5)
            assert "kind042" == await ran.get()
