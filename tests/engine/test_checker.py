"""The checker: a busy database gives no violation, and each planted one is found, on both databases."""

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from retoma import Context, Limit, Park, Retoma, Skip, Snooze, Transient
from retoma.db import adhoc
from retoma.engine import checker, store
from retoma.engine.checker import Violation
from retoma.engine.checker.effect_ledger import (
    Accepted,
    Ledger,
    LedgerWriter,
    append,
    read_ledger,
)
from retoma.engine.checker.timelines import RULES, WITH_LEDGER
from retoma.engine.checker.totals import TOTALS
from retoma.engine.testing import drain
from tests.engine.aids import AT_ONCE, running

QUICK = {"tick": 0.2, "beat": 0.05}
UNLOCK = adhoc(  # events are never changed, except to plant a violation
    "DROP TRIGGER events_are_immutable;\n\nDROP TRIGGER events_outlive_their_job;",
    "ALTER TABLE events DISABLE TRIGGER ALL",
)
SHORT = {
    "COPY ": "INSERT INTO events (job, seq, epoch, type, at, actor, details) ",
    "STEP ": "INSERT INTO steps (job, name, version, key, generation, epoch, state, value) ",
}
# By rule: statements that make a row or a total impossible. Job 6 is a paid one that is done by its
# first claim, 21 is dead after three, 26 has held items of a pool, 36 was canceled.
PLANTED = {
    "moves": ["UPDATE events SET type = 'parked' WHERE job = 21 AND type = 'failed'"],
    "state": ["UPDATE jobs SET state = 'canceled' WHERE id = 6"],
    "events": [
        "DELETE FROM events WHERE job = 6 AND type = 'step_saved'",
        "UPDATE jobs SET seq = seq + 1 WHERE id = 6",
    ],
    "epochs": ["UPDATE jobs SET epoch = 7 WHERE id = 6"],
    "stale writes": [
        "UPDATE events SET epoch = 9 WHERE job = 6 AND type = 'step_saved'",
        "UPDATE events SET actor = 'another' WHERE job = 6 AND type = 'step_saved'",
    ],
    "claims": [
        "COPY SELECT job, seq + 1, epoch, type, at, actor, details FROM events"
        " WHERE job = 6 AND type = 'done'",
        "DELETE FROM events WHERE job = 6 AND type = 'done'",
    ],
    "releases": [
        "COPY SELECT 6, 100 + job, 1, 'released', at, actor, NULL FROM events"
        " WHERE type = 'submitted'"
    ],
    "failures": ["UPDATE jobs SET failures = 2 WHERE id = 6"],
    "poison": [
        """UPDATE events SET details = '{"reason":"poison"}' WHERE job = 21 AND type = 'buried'"""
    ],
    "cancel": [
        "COPY SELECT job, seq + 1, 1, 'claimed', at, actor, NULL FROM events"
        " WHERE job = 36 AND type = 'canceled'"
    ],
    "lost jobs": [
        "UPDATE jobs SET state = 'waiting', turn = NULL, run_at = NULL, ended_at = NULL"
        " WHERE id = 6",
        "UPDATE jobs SET ended_at = NULL WHERE id = 6",
    ],
    "steps": [
        "COPY SELECT job, seq + 10, epoch, type, at, actor, details FROM events"
        " WHERE job = 6 AND type = 'step_saved'",
        "STEP VALUES (6, 'never told', 1, '', 1, 1, 'saved', '1')",
        "UPDATE steps SET epoch = 4 WHERE job = 6",
    ],
    "intents": [
        "COPY SELECT 6, 100, 1, 'step_begun', at, actor, details FROM events"
        " WHERE job = 26 AND type = 'step_saved'"
    ],
    "costs": [
        "UPDATE costs SET amount = 1 WHERE scope = 'job' AND name = '6' AND unit = 'input_tokens'"
    ],
    "counters": [
        "UPDATE counts SET n = n + 1 WHERE batch = 1 AND state = 'done'",
        "UPDATE counts SET n = n - 1 WHERE batch = -1 AND kind = 'skip' AND state = 'skipped'",
        "INSERT INTO tallies (kind, to_state, minute, n) SELECT 'paid', 'done', min(at), 1 FROM events",
    ],
    "limits": ["UPDATE limits SET used = used + 1"],
    "accounts": ["UPDATE costs SET amount = amount + 1 WHERE scope = 'kind'"],
    "holds": [
        "UPDATE pool_items SET job = 9999, scope = 'release', epoch = 1, generation = 1",
        "UPDATE pool_items SET job = 6, scope = 'attempt', epoch = 9, generation = 1",
        "COPY SELECT 6, 100, 1, type, at, actor, details FROM events"
        " WHERE job = 26 AND type = 'held'"
        " AND seq = (SELECT min(seq) FROM events WHERE job = 26 AND type = 'held')",
    ],
    "batches": [
        "UPDATE batches SET last_job = first_job WHERE id = 1",
        "UPDATE jobs SET batch = 999 WHERE id = 6",
    ],
    "orphans": ["STEP VALUES (9999, 'left behind', 1, '', 1, 1, 'saved', '1')"],
    "runners": [
        "UPDATE jobs SET state = 'running', runner = 'nobody', ended_at = NULL WHERE id = 6"
    ],
}
PAID: dict[str, Any] = {
    "provider": "openai",
    "model": "small",
    "usd": "0.01",
    "input_tokens": 10,
}
# By rule: lines of the ledger that tell of what cannot be.
WRITTEN: dict[str, list[Callable[["Busy"], None]]] = {
    "repeated steps": [lambda busy: busy.write_effect(6, 2, "ask", "start")],
    "repeated effects": [lambda busy: busy.write_effect(6, 1, "ask", "start", "end", "end")],
    "step values": [lambda busy: busy.write_effect(6, 1, "ask", "end", value="another")],
    "holders": [
        lambda busy: busy.write_effect(6, 5, "ask", "end"),
        lambda busy: busy.write_effect(6, 1, "ask", "seen", pid=1),
    ],
    "costs": [
        lambda busy: busy.write_effect(6, 1, "ask", "charge", value=PAID),
        lambda busy: busy.write_effect(1, 1, "step 0", "charge", value=PAID),
    ],
    "submissions": [
        lambda busy: busy.write_accepted(Accepted(9999, 7)),
        lambda busy: busy.write_accepted(Accepted(6, "another")),
        lambda busy: busy.write_accepted(Accepted(7, 1, "paid one")),
    ],
}


class Undone(Exception):
    """Takes back what was planted, and carries what was found meanwhile."""

    def __init__(self, found: list[Violation]) -> None:
        self.found = found


class Busy:
    """A database in which every sort of thing has happened, and the ledger of its handlers."""

    def __init__(self, url: str, folder: Path) -> None:
        self.app = Retoma(url)
        self.folder = folder
        self._told = LedgerWriter(folder)
        for handler in (self.chain, self.paid, self.nap, self.skip, self.hopeless, self.borrow):
            self.app.job(name=handler.__name__, retry=AT_ONCE, limit=Limit(5))(plain(handler))
        self.app.job(name="parks")(plain(self.parks))

    async def chain(self, ctx: Context, n: int) -> list[str]:
        steps = [await ctx.step(f"step {k}", self._work, ctx, f"step {k}") for k in range(2)]
        if ctx.attempt <= n % 2:
            raise Transient("not this time")
        return steps

    async def paid(self, ctx: Context, n: int) -> Any:
        async def ask() -> int:
            self._told.effect(ctx, "ask", "start")
            ctx.cost(provider="openai", model="small", usd="0.01", input_tokens=10)
            self._told.effect(ctx, "ask", "charge", PAID)
            self._told.effect(ctx, "ask", "end", n)
            return n

        return await ctx.step("ask", ask)

    async def nap(self, ctx: Context, n: int) -> Any:
        return Snooze(0) if ctx.epoch == 1 else n

    async def skip(self, ctx: Context, n: int) -> Any:
        return Skip("not needed")

    async def parks(self, ctx: Context, n: int) -> Any:
        return Park("look at it")

    async def hopeless(self, ctx: Context, n: int) -> None:
        raise Transient("never")

    async def borrow(self, ctx: Context, n: int) -> None:
        async with ctx.use("things") as thing:
            await ctx.step("borrowed", self._work, ctx, "borrowed")
        held = await ctx.use("things", scope="job")
        assert thing.name
        assert held.name

    async def _work(self, ctx: Context, name: str) -> str:
        self._told.effect(ctx, name, "start")
        value = f"{name} of job {ctx.job}"
        self._told.effect(ctx, name, "end", value)
        return value

    async def live(self) -> None:
        await self.app.upgrade()
        await self.app.pools.declare("things", {"a": 1, "b": 2})
        for kind in ("chain", "paid", "nap", "skip", "hopeless", "borrow", "parks"):
            batch = await self.app.submit_many(kind, range(4), key=f"many {kind}")
            assert batch.id
            job = await self.app.submit(kind, 7, key="one")
            self._told.accepted(Accepted(job.id, 7, f"{kind} one"))
        await drain(self.app, **QUICK)
        await self.app.retry(1)
        await drain(self.app, **QUICK)
        await self.app.cancel((await self.app.submit("chain", 1, delay=3600)).id)
        database = await self.app.database()
        await database.write(lambda tx: store.cost.fold_charges(tx, "UTC"), verb="test")
        await database.write(store.fold_tallies, verb="test")

    @property
    def ledger(self) -> Ledger:
        return read_ledger(self.folder)

    async def violations(self, ledger: Ledger | None = None, **how: Any) -> list[Violation]:
        database = await self.app.database()
        return await database.read(lambda tx: checker.check(tx, ledger, **how))

    async def planted(self, sql: str) -> set[str]:
        """The rules that a change breaks; nothing of it stays."""

        for short, whole in SHORT.items():
            sql = sql.replace(short, whole)

        def change(tx: Any) -> None:
            tx.run(UNLOCK)
            assert tx.run(adhoc(sql)), f"nothing was planted by {sql}"
            raise Undone(checker.check(tx))

        database = await self.app.database()
        with pytest.raises(Undone) as undone:
            await database.write(change, verb="test")
        return {each.rule for each in undone.value.found}

    def write_effect(
        self, job: int, epoch: int, step: str, *phases: str, value: Any = None, pid: int = 0
    ) -> None:
        for phase in phases:
            line = {"job": job, "gen": 1, "epoch": epoch, "step": step, "phase": phase, "at": 0}
            self._append("effects", line | {"pid": pid or os.getpid(), "value": value})

    def write_accepted(self, each: Accepted) -> None:
        self._append("accepted", asdict(each))

    def _append(self, what: str, line: dict[str, Any]) -> None:
        append(self.folder / f"{what}-planted.jsonl", line)

    async def written(self, write: Callable[["Busy"], None]) -> set[str]:
        """The rules that lines of the ledger break; they are taken out again."""
        write(self)
        found = {each.rule for each in await self.violations(self.ledger)}
        for file in self.folder.glob("*-planted.jsonl"):
            file.unlink()
        return found


def plain(handler: Any) -> Any:
    async def run(ctx: Context, payload: int) -> Any:
        return await handler(ctx, payload)

    return run


@pytest.fixture
def busy(database_url: str, tmp_path: Path) -> Busy:
    folder = tmp_path / "ledger"
    folder.mkdir()
    return Busy(database_url, folder)


async def test_a_busy_database_gives_none_and_every_planted_violation_is_found(busy):
    """E1 to E20, each broken once in the rows or in the ledger."""
    async with busy.app:
        await busy.live()
        assert [] == await busy.violations(busy.ledger)
        assert [] == await busy.violations(page=3)

        missed = [
            (rule, sql)
            for rule, each in PLANTED.items()
            for sql in each
            if rule not in await busy.planted(sql)
        ]
        missed += [
            (rule, f"ledger {n}")
            for rule, each in WRITTEN.items()
            for n, write in enumerate(each)
            if rule not in await busy.written(write)
        ]

        assert [] == missed
        assert [] == await busy.violations(busy.ledger), "something planted has stayed"


def test_every_rule_has_a_planted_violation():
    assert {*RULES, *WITH_LEDGER, *TOTALS} == PLANTED.keys() | WRITTEN.keys()


async def test_a_violation_names_its_object_and_no_rule_is_reported_without_end(busy):
    async with busy.app:
        await busy.live()
        database = await busy.app.database()
        change = adhoc("UPDATE jobs SET failures = failures + 5")
        await database.write(lambda tx: tx.run(change), verb="test")

        found = await busy.violations(most=3)

        assert [("failures", f"job {n}") for n in (1, 2, 3)] == [
            (each.rule, each.subject) for each in found
        ]
        assert "its row counts 5 failures, its events tell of 0" == found[0].found
        assert "retoma jobs show 1" in found[0].todo


async def test_jobs_that_have_not_ended_are_named_for_who_waited_for_all(busy):
    async with busy.app:
        await busy.live()
        database = await busy.app.database()

        found = await database.read(checker.open_jobs)

        assert [f"job {n}" for n in range(31, 36)] == [each.subject for each in found]
        assert {"it is still parked"} == {str(each.found) for each in found}


async def test_jobs_at_work_are_no_violation(busy):
    """Between two writes everything is as it should be, whatever runs."""
    async with busy.app:
        await busy.live()
        async with running(busy.app, **QUICK):
            for n in range(20):
                await busy.app.submit_many("chain", range(10), key=f"at work {n}")
                assert [] == await busy.violations()
