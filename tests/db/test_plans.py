"""Every hot statement walks its index on either database, with statistics and without (MECHANICS 9).

The store's own verbs are called; each of their statements is explained with its real parameters
before it runs, over 20,000 jobs of which few are of interest.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

from retoma import Retoma, db
from retoma.db import Call, Row, Statement, Transaction, adhoc, migrations, statement
from retoma.db.rows import Rows
from retoma.db.statements import Text
from retoma.engine import store
from retoma.engine.rules import settlement
from retoma.engine.rules.job import Claim, Item, Scope, StepId
from retoma.engine.rules.pool_items import Freeing, Taking
from retoma.engine.store import NewJob, Spot
from retoma.engine.store.pool import PoolRules
from tests.engine import aids

JOBS = 20_000
GATED = 2_000
HOLDERS = ("me", "lost")

FILL = (
    "UPDATE jobs SET state = 'done', turn = NULL WHERE id % 2 = 0",
    "UPDATE jobs SET turn = NULL, run_at = (SELECT clock()) WHERE id % 20 = 1",
    "UPDATE jobs SET state = 'running', runner = 'me', epoch = 1 WHERE id % 20 = 3",
    "UPDATE jobs SET state = 'running', runner = 'lost', epoch = 1 WHERE id % 20 = 5",
    "UPDATE jobs SET lost = 2 WHERE id % 2000 = 7",
    "UPDATE runners SET state = 'lost' WHERE boot = 'lost'",
    "INSERT INTO batches (id, name, kind, first_job, created_at, paused_at)"
    " VALUES (1, 'a', 'gated', 1, (SELECT clock()), (SELECT clock()))",
    "INSERT INTO limits (key, cap) VALUES ('site:a', 2)",
    "INSERT INTO limits (key, cap) SELECT 'job:' || id, 1 FROM jobs WHERE id % 20 = 0",
    "UPDATE jobs SET limit_key = 'site:a' WHERE kind = 'gated'",
    "UPDATE jobs SET aside = 'limit:site:a' WHERE kind = 'gated' AND id % 4 = 0",
    "UPDATE jobs SET batch = 1 WHERE kind = 'gated' AND id % 4 = 1",
    "UPDATE jobs SET aside = 'batch:1' WHERE kind = 'gated' AND id % 8 = 1",
)


class Explaining(Rows[Statement]):
    """A transaction that asks for the plan of each statement before it runs it."""

    def __init__(self, inner: Transaction, plans: dict[str, list[str]]) -> None:
        self.dialect = inner.dialect
        self._inner = inner
        self._plans = plans

    def run(self, statement: Statement, **params: Any) -> int:
        self.ask(statement, params)
        return 0

    def finish(self, *calls: Call) -> list[list[Row]]:
        return [self.ask(call.statement, call.params) for call in calls]

    def together(self, calls: Iterable[Call]) -> list[list[Row]]:
        return self.finish(*calls)

    def ring(self, topic: str) -> None:
        self._inner.ring(topic)

    def ask(self, statement: Statement, params: dict[str, Any]) -> list[Row]:
        answer: list[Row] = []
        for text in getattr(statement, self.dialect):
            self._explain(statement.name, text.sql, params)
            rows = self._inner.all(alone(text), **params)
            answer = rows if text.answers else answer
        return answer

    def _explain(self, name: str, sql: str, params: dict[str, Any]) -> None:
        if "CREATE TEMP TABLE" in sql:
            return
        if called := CALL.fullmatch(sql):
            sql = self._body(*called.groups())
        ask = "EXPLAIN QUERY PLAN" if self.dialect == "sqlite" else "EXPLAIN (COSTS off)"
        rows = self._inner.all(alone(Text(f"{ask} {sql}", True)), **params)
        self._plans[name] += [str(row[-1]) for row in rows]

    def _body(self, function: str, arguments: str) -> str:
        """What a function of ours runs, with what it is called with in the place of its parameters."""
        [(body, names)] = self._inner.all(BODY, function=function)
        given = dict(zip(names, arguments.split(", "), strict=True))
        return re.sub(rf"\b({'|'.join(names)})\b", lambda found: given[found[0]], body)


# Of a statement that only calls a function no plan says what is read.
CALL = re.compile(r"(?:--[^\n]*\n)*SELECT \* FROM retoma\.(\w+)\((.*)\)")
BODY = adhoc("SELECT 1", "SELECT prosrc, proargnames FROM pg_proc WHERE proname = :function")


def alone(text: Text) -> Statement:
    return Statement("explained", (text,), (text,))


LOOKING_UP = (
    "claim_met_jobs",
    "load_steps",
    "may_hold",
    "report_progress",
    "save_steps",
    "set_aside",
    "settle_jobs",
)
ANALYZE = alone(Text("ANALYZE", answers=False))


async def fill(database: db.Database) -> None:
    await migrations.upgrade(database)
    for boot in HOLDERS:
        await aids.boot(database, boot)
    await aids.submit(database, JOBS)
    await aids.submit(database, GATED, kind="gated")
    for sql in FILL:
        await aids.change(database, sql)


async def plans_of_hot_verbs(database: db.Database) -> dict[str, list[str]]:
    plans: dict[str, list[str]] = defaultdict(list)

    def work(tx: Transaction) -> None:
        explaining: Any = Explaining(tx, plans)
        assert 1 <= len(store.waiting_queues(explaining, ["work", "none"], ["work@1"], 1))
        held = store.claim_jobs(
            explaining, "me", [Spot("work")], ["work@1"], slots=50, suspects=1, promote=True
        ).claims
        assert 50 <= len(held) <= 51
        store.load_steps(explaining, held)
        steps = [
            (claim.held, StepId(name), store.step_fields(StepId(name), "1"))
            for claim in held
            for name in "ab"
        ]
        take_and_free(explaining, held)
        rows = [store.settle_row(claim.held, settlement.done("1")) for claim in held]
        reports = [store.report_row(claim.held, 0.5, None) for claim in held]
        saved, reported, ended = explaining.finish(
            store.saves("me", steps), store.reports("me", reports), store.settles("me", rows)
        )
        assert len(held) == len(saved) == len(reported) == len(ended)
        assert store.BITE == len(store.take_back(explaining, "me"))
        gated = store.claim_past_gates(
            explaining,
            "me",
            [Spot("gated")],
            ["gated@1"],
            slots=20,
            suspects=1,
            promote=True,
            meet=50,
        )
        assert 2 == len(gated.claims)
        store.give_back(explaining, [claim.limit_key for claim in gated.claims])
        assert store.open_gates(explaining)
        store.put_back_batch(explaining, 1, offset=0)
        store.submit_job(explaining, aids.about(), NewJob("1"))
        store.submit_job(explaining, aids.about(), NewJob("1", limits={"site:a": 2}))
        store.submit_job(explaining, aids.about(), NewJob("1", "key", "hash"))
        store.recall_jobs(explaining, "me")
        seen = store.look_around(
            explaining, "me", "here", queues=["work"], knows=["work@1"], duties=["fold"]
        )
        assert seen.waiting
        store.cancels(explaining, "me")

    await database.write(work, verb="explain")
    return plans


def take_and_free(tx: Transaction, claims: Sequence[Claim]) -> None:
    """As the groups of the writer do, with many things, many of them left by the dead."""
    store.pool.put_pool(tx, "things", PoolRules(), actor="test")
    things = [(f"thing {n}", "1", "") for n in range(1_000)]
    store.pool.put_items(tx, "things", things, actor="test")
    for sql in LEFT_HELD:
        tx.run(adhoc(sql))
    takings = [Taking(claim.held, 1, "things", Scope.ATTEMPT) for claim in claims]
    [may] = tx.together([store.pool.may_hold("me", takings)])
    found = store.pool.hand_out(tx, "me", takings)
    frees = [
        Freeing(taking.held, item) for taking, item in found.items() if isinstance(item, Item)
    ]
    assert len(claims) == len(may) == len(frees)
    store.pool.held_things(tx, [claim.held for claim in claims])
    [told] = tx.together([store.pool.letting_go("me", frees)])
    assert len(told) == len(store.pool.let_go(tx, "me", frees))
    store.pool.let_in(tx, {"things": 9})


LEFT_HELD = (
    "UPDATE pool_items SET job = id, epoch = 99, generation = 1, scope = 'attempt' WHERE id > 10",
)


@pytest.fixture
def database(database_url) -> Iterator[db.Database]:
    opened = db.open(database_url)
    yield opened
    opened.close()


async def test_every_hot_statement_walks_its_index_with_statistics_and_without(database):
    await fill(database)

    check(database.dialect, await plans_of_hot_verbs(database))
    await database.write(lambda tx: tx.run(ANALYZE), verb="test")
    check(database.dialect, await plans_of_hot_verbs(database))


def check(dialect: str, plans: dict[str, list[str]]) -> None:
    for verb, index in INDEX.items():
        plan = "\n".join(plans[verb])
        assert index[dialect] in plan, f"{verb} does not use {index[dialect]}:\n{plan}"
    for verb in ("save_steps", "settle_jobs", "report_progress", "may_hold", "tell_holds"):
        assert "jobs_held" not in "\n".join(plans[verb]), verb
    from_end_to_end = SCANS[dialect](plans)
    assert not from_end_to_end, from_end_to_end


BY_KEY = {
    "sqlite": "USING INTEGER PRIMARY KEY (rowid=?)",
    "postgres": "Index Scan using jobs_pkey on jobs j",
}


def both(index: str) -> dict[str, str]:
    return {"sqlite": index, "postgres": index}


INDEX = {
    "claim_jobs": both("jobs_waiting"),
    "claim_met_jobs": BY_KEY,
    "meet_jobs": both("jobs_waiting"),
    "open_gates": both("jobs_aside"),
    "promote_jobs": both("jobs_not_due"),
    "put_back": both("jobs_aside"),
    "set_aside": BY_KEY,
    "next_due": both("jobs_not_due"),
    "look_around": both("jobs_waiting"),
    "take_back_jobs": both("jobs_held"),
    "recall_jobs": both("jobs_held"),
    "cancels": both("jobs_held"),
    "may_hold": BY_KEY,
    "tell_holds": BY_KEY,
    "held_things": both("pool_items_held"),
    "save_steps": BY_KEY,
    "settle_jobs": BY_KEY,
    "report_progress": BY_KEY,
    "submit_jobs": both("jobs_waiting"),
    "submit_keyed_jobs": both("jobs_waiting"),
    "waiting_queues": both("jobs_waiting"),
}


def sqlite_scans(plans: dict[str, list[str]]) -> list[str]:
    """Whole tables read; a set that was sent, and what a temp table holds, is meant to be."""
    sent = re.compile(
        r"SCAN (temp\.|jsonb?_each|CONSTANT|[a-z] VIRTUAL|runners|[a-z]$|r\b"
        r"|b USING INDEX batches_paused|\(subquery|gates"
        r"|due|tallies|charges|schedules|duties|others)"
    )
    return [
        f"{verb}: {line}"
        for verb, lines in plans.items()
        for line in lines
        if line.startswith("SCAN ") and not sent.match(line)
    ]


def postgres_scans(plans: dict[str, list[str]]) -> list[str]:
    """Whole tables read, or whole indices: a scan of one without any condition."""
    found = []
    for verb, lines in plans.items():
        for place, line in enumerate(lines):
            if re.search(r"Seq Scan on (jobs|events|steps)", line):
                found.append(f"{verb}: {line}")
            if re.search(r"Index (Only )?Scan .*on (jobs|events|steps)", line):
                after = lines[place + 1] if place + 1 < len(lines) else ""
                if "Index Cond" not in after:
                    found.append(f"{verb}: {line} / {after}")
    return found


SCANS = {"sqlite": sqlite_scans, "postgres": postgres_scans}


async def plans_of_retention(database: db.Database) -> dict[str, list[str]]:
    plans: dict[str, list[str]] = defaultdict(list)

    def work(tx: Transaction) -> None:
        explaining: Any = Explaining(tx, plans)
        bounds = store.bounds(explaining, done=-60.0, dead=None, events=-60.0)
        page = store.old_jobs(explaining, bounds, 0)
        assert len(page.old) >= store.RETIRE_CHUNK
        chunk = page.old[: store.RETIRE_CHUNK]
        assert store.RETIRE_CHUNK == store.retire_jobs(explaining, bounds, chunk, actor="test")
        store.old_events(explaining, bounds, 0)
        assert store.RETIRE_CHUNK == store.retire_events(
            explaining, bounds, chunk, actor="test"
        )
        store.retire_batches(explaining, bounds, 0, actor="test")
        store.take_duties(explaining, "me", ["fold", "schedule"])

    await database.write(work, verb="explain")
    return plans


async def test_retention_reads_a_page_and_not_the_history(database):
    await fill(database)
    await aids.change(database, "UPDATE jobs SET ended_at = created_at WHERE state = 'done'")

    for analyze in (False, True):
        if analyze:
            await database.write(lambda tx: tx.run(ANALYZE), verb="test")
        plans = await plans_of_retention(database)
        for verb, table in (
            ("old_jobs", "jobs"),
            ("hold_old_jobs", "jobs"),
            ("retire_jobs", "steps"),
            ("retire_events", "events"),
        ):
            assert any(table in line for line in plans[verb]), f"{verb}: {plans[verb]}"
            found = SCANS[database.dialect]({verb: plans[verb]})
            assert not found, f"{verb} on {table}: {found}\n" + "\n".join(plans[verb])


@pytest.mark.parametrize(
    ("jobs", "analyzed"),
    [(0, False), (1, False), (30, False), (1000, False), (100, True), (1000, True)],
)
async def test_a_plan_made_while_few_jobs_were_there_looks_each_one_up(
    postgres_url, jobs, analyzed
):
    """It is kept for long: read from end to end, the table would be so when it has grown too."""
    async with Retoma(postgres_url) as app:
        await app.upgrade()
        database = await app.database()
        if jobs:
            await aids.submit(database, jobs)
        if analyzed:
            await database.write(lambda tx: tx.run(ANALYZE), verb="test")
        sent = {"boot": "me", "rows": "[]", "jobs": "[]", "inline": 1}

        for verb in LOOKING_UP:
            [text] = statement("retoma.engine.store.sql", verb).postgres
            explain = alone(Text(f"EXPLAIN (COSTS off) {text.sql}", answers=True))
            plan = "\n".join(
                line
                for (line,) in await database.read(
                    lambda tx, ask=explain: tx.all(ask, **sent)  # type: ignore[misc]
                )
            )
            assert re.search(r"jobs_pkey on jobs j\w*\n +Index Cond: \(id = ", plan), plan
