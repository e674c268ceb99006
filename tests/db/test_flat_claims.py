"""A claim costs the same whatever stands before it that may not be claimed (E28, MECHANICS 7).

Counted in work, not in time: rows that PostgreSQL touches, steps of SQLite's machine. Before the
claimable stand scheduled jobs, those of a paused batch, those behind a limit, and kinds and
versions nobody here knows.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from retoma import db
from retoma.db import Call, Row, Transaction, migrations
from retoma.db.rows import Rows
from retoma.engine import store
from retoma.engine.store import Found, Spot
from tests.db.test_plans import ANALYZE, alone
from tests.engine import aids

SOME = 200
STEPS = 10  # of SQLite's machine between two looks at the count


class Weighing(Rows[db.Statement]):
    """A transaction that adds up what its statements touch."""

    def __init__(self, inner: Transaction) -> None:
        self.dialect = inner.dialect
        self.weight = 0
        self._inner = inner

    def run(self, statement: db.Statement, **params: Any) -> int:
        self._execute(Call(statement, params))
        return 0

    def ask(self, statement: db.Statement, params: dict[str, Any]) -> list[Row]:
        return self._execute(Call(statement, params))

    def finish(self, *calls: Call) -> list[list[Row]]:
        return [self._execute(call) for call in calls]

    def together(self, calls: Any) -> list[list[Row]]:
        return self.finish(*calls)

    def ring(self, topic: str) -> None: ...

    def _execute(self, call: Call) -> list[Row]:
        return WEIGHS[self.dialect](self, call)

    def in_steps(self, call: Call) -> list[Row]:
        def count() -> bool:
            self.weight += STEPS
            return False

        connection = cast("Any", self._inner)._connection
        connection.set_progress_handler(count, STEPS)
        try:
            return self._inner.all(call.statement, **call.params)
        finally:
            connection.set_progress_handler(None)

    def in_rows(self, call: Call) -> list[Row]:
        """Explained while it runs: its answer is the plan, and that is all we want here."""
        for text in call.statement.postgres:
            sql = f"EXPLAIN (ANALYZE, FORMAT JSON) {text.sql}"
            [(plan,)] = self._inner.all(
                alone(text._replace(sql=sql, answers=True)), **call.params
            )
            self.weight += sum(touched(json.loads(plan)[0]["Plan"]))
        return []


WEIGHS: dict[str, Callable[[Weighing, Call], list[Row]]] = {
    "sqlite": Weighing.in_steps,
    "postgres": Weighing.in_rows,
}


def touched(plan: dict[str, Any]) -> Iterator[int]:
    """What each look at jobs gave, and what it threw away."""
    if plan.get("Relation Name") == "jobs" and "Scan" in plan["Node Type"]:
        rows = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        yield int(rows * plan["Actual Loops"])
    for inner in plan.get("Plans", ()):
        yield from touched(inner)


async def weight_of_a_claim(database: db.Database) -> int:
    def look(tx: Transaction) -> int:
        weighing = Weighing(tx)
        claiming: Any = weighing
        found: Found | None = None
        if tx.dialect == "sqlite":
            found = claim(claiming, promote=True)
            assert 50 == len(found.claims)
        else:
            claim(claiming, promote=False)  # its answer is a plan
        return weighing.weight

    return await database.write(look, verb="weigh")


def claim(tx: Any, *, promote: bool) -> Found:
    return store.claim_jobs(
        tx, "me", [Spot("work")], ["work@1"], slots=50, suspects=1, promote=promote
    )


async def block(database: db.Database, n: int) -> None:
    """What stands before everything else in its queue and may not be claimed."""
    first = {"priority": -10}
    await aids.submit(database, n, delay=3600, **first)
    await aids.submit(database, n, batch=1, **first)
    await aids.submit(database, n, batch=2, **first)
    await aids.submit(database, n, queue="work@2", version=2, **first)
    await aids.submit(database, n, kind="unknown", **first)
    await aids.change(
        database, "UPDATE jobs SET aside = 'batch:1' WHERE batch = 1 AND state = 'waiting'"
    )
    await aids.change(
        database, "UPDATE jobs SET aside = 'limit:site:a' WHERE batch = 2 AND state = 'waiting'"
    )


@pytest.mark.parametrize(
    "n", [4_000, pytest.param(100_000, marks=[pytest.mark.soak, pytest.mark.timeout(600)])]
)
async def test_e28_a_claim_is_as_light_behind_what_may_not_be_claimed(database_url, n):
    database = db.open(database_url)
    try:
        await migrations.upgrade(database)
        await aids.boot(database)
        await aids.submit(database, SOME)
        free = await weight_of_a_claim(database)

        await block(database, n)
        await database.write(lambda tx: tx.run(ANALYZE), verb="test")
        behind = await weight_of_a_claim(database)

        assert 0 < behind <= 1.3 * free, f"{free} before, {behind} behind {5 * n} jobs"
        await aids.submit(database, n)  # more than statistics know of
        assert await weight_of_a_claim(database) <= 1.3 * free
    finally:
        database.close()
