"""What a long history costs: the same questions to a small database and to a large one, in turns.

The history is written by SQL as the engine would have left it: jobs in batches of a thousand, a few
of them ended badly, three events each, the counters folded. What is measured are the store's own
functions in the database's thread, a claim with its commit.
"""

import asyncio
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from bench.child import call
from bench.compare import Figures, Measure
from bench.floor import BOOT, KIND, KNOWS, Floor
from bench.places import Places

if TYPE_CHECKING:
    from retoma.db import Database, Transaction

Question = Callable[["Transaction"], object]

HERE = "bench.history"
PER_BATCH = 1_000
RARE = "rare"  # one job in a hundred, all the way
OLD = "old"  # the first jobs of all, and none since
PAGE = 20  # jobs: there are as many in the small one too
CLAIMED = 100  # jobs in a claim
LIMIT = 1_200.0  # seconds: a million rows with all their indices, twice

QUESTIONS = (
    *("claim", "tick", "stuck", "counters"),
    *("list_state", "list_kind", "list_old_kind", "list_batch"),
)


# --- In the parent


def growth(make: str, small: int, large: int, samples: int) -> Measure:
    """How many times longer each of QUESTIONS takes with `large` jobs of history than with `small`."""

    def measure(places: Places) -> Figures:
        urls = [address(places, make, side) for side in ("small", "large")]
        for url, jobs in zip(urls, (small, large), strict=True):
            call(f"{HERE}:write_history", limit=LIMIT, url=url, jobs=jobs)
        ratios = call(f"{HERE}:ask_in_turns", limit=LIMIT, urls=urls, samples=samples)
        return tuple(ratios[name] for name in QUESTIONS)

    return measure


def address(places: Places, make: str, side: str) -> str:
    return places.postgres(side) if make == "postgres" else f"sqlite:///{places.file(side)}"


# --- In a child


def write_history(url: str, jobs: int) -> None:
    asyncio.run(write_all(url, jobs))


async def write_all(url: str, jobs: int) -> None:
    from retoma import db
    from retoma.db.migrations import upgrade
    from retoma.engine.store import fold_tallies

    database = db.open(url)
    await upgrade(database)
    for sql in history_sql(database.dialect):
        await database.write(
            lambda tx, sql=sql: tx.run(db.adhoc(sql), jobs=jobs),  # type: ignore[misc]
            verb="history",
        )
    while await database.write(fold_tallies, verb="fold"):
        pass
    database.close()
    if url.startswith("postgresql:"):
        clean(url)  # as autovacuum has long done in a history that grew by itself


def clean(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")


def history_sql(dialect: str) -> Iterator[str]:
    """Statements that write a history of `:jobs`; `i` is a job's number, `ago` its age in seconds."""
    series = (
        "SELECT i FROM generate_series(1, CAST(:jobs AS bigint)) AS s(i)"
        if dialect == "postgres"
        else "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < :jobs)"
        " SELECT i FROM s"
    )
    history = f"""(SELECT i, (i - 1) / {PER_BATCH} + 1 AS batch, (i - :jobs) * 2.0 AS ago,
        CASE WHEN i <= 2 * {PAGE} THEN '{OLD}' WHEN i % 100 = 1 THEN '{RARE}'
             ELSE '{KIND}' END AS kind,
        CASE i % 100 WHEN 7 THEN 'dead' WHEN 8 THEN 'skipped' WHEN 9 THEN 'canceled'
                     ELSE 'done' END AS state FROM ({series}) AS numbers) AS h"""  # noqa: S608
    batch_times = "clock_in(max(ago))"
    yield f"""INSERT INTO batches (id, name, key, kind, first_job, last_job, created_at)
        SELECT batch, 'history ' || batch, 'history ' || batch, '{KIND}', min(i), max(i),
               {batch_times} FROM {history} GROUP BY batch"""  # noqa: S608
    yield f"""INSERT INTO jobs (id, kind, version, queue, batch, state, reason, code, epoch, seq,
                                turn, payload, result, created_at, started_at, ended_at)
        SELECT i, kind, 1, kind, batch, state, CASE state WHEN 'dead' THEN 'exhausted' END,
               CASE state WHEN 'dead' THEN 'exception' END, 1, 3, 0, '{{"number":1}}', 'null',
               clock_in(ago - 20), clock_in(ago - 10), clock_in(ago) FROM {history}"""  # noqa: S608
    end = "CASE state WHEN 'dead' THEN 'buried' ELSE state END"
    for seq, epoch, kind in ((1, "NULL", "'submitted'"), (2, "1", "'claimed'"), (3, "1", end)):
        yield f"""INSERT INTO events (job, seq, epoch, type, at, actor)
            SELECT i, {seq}, {epoch}, {kind}, clock_in(ago - 10), 'history' FROM {history}"""  # noqa: S608
    minute = (
        f"date_trunc('minute', {batch_times})"
        if dialect == "postgres"
        else f"{batch_times} / 60000000 * 60000000"
    )
    yield f"""INSERT INTO tallies (batch, kind, to_state, code, minute, n)
        SELECT batch, kind, state, CASE state WHEN 'dead' THEN 'exception' END, {minute}, count(*)
        FROM {history} GROUP BY batch, kind, state"""  # noqa: S608
    if dialect == "postgres":
        for table in ("batches", "jobs"):
            yield (
                f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id), true)"  # noqa: S608
                f" FROM {table}"
            )


def ask_in_turns(urls: list[str], samples: int) -> dict[str, float]:
    return asyncio.run(ask(urls, samples))


async def ask(urls: list[str], samples: int) -> dict[str, float]:
    """Each question as often to both, the order changing: noise is noise for both."""
    with opened(urls) as databases:
        for database in databases:
            await prepare(database, samples * CLAIMED)
        ratios = {}
        for name, (question, writes) in (await questions(databases)).items():
            taken: list[list[float]] = [[], []]
            for turn in range(samples):
                order = (0, 1) if turn % 2 else (1, 0)
                for side in order:
                    taken[side].append(await timed(databases[side], question(side), writes))
            small, large = (statistics.median(seconds) for seconds in taken)
            ratios[name] = large / small
        return ratios


@contextmanager
def opened(urls: list[str]) -> "Iterator[list[Database]]":
    from retoma import db

    databases = [db.open(url) for url in urls]
    yield databases
    for database in databases:
        database.close()


async def prepare(database: "Database", waiting: int) -> None:
    """A runner, and something to claim."""
    from retoma.engine.store import Submission, submit_jobs

    await Floor(database, CLAIMED).boot()
    about = Submission(kind=KIND, version=1, queue=KIND)
    await database.write(
        lambda tx: submit_jobs(tx, about, ["{}"] * waiting), verb="submit_many"
    )


async def questions(
    databases: "list[Database]",
) -> dict[str, tuple[Callable[[int], Question], bool]]:
    """By name: what is asked of the small (0) and of the large (1) one, and whether it writes."""
    from retoma.engine import query as insights
    from retoma.engine.ops.watchdog import Watchdog
    from retoma.engine.ports import Process
    from retoma.engine.rules.states import State
    from retoma.engine.store import Spot, claim_jobs

    dogs = [Watchdog(database, BOOT, Process.this(), 60.0) for database in databases]
    middles = [await database.read(middle_batch) for database in databases]

    def same(question: Question) -> Callable[[int], Question]:
        return lambda _side: question

    def claim(tx: "Transaction") -> object:
        return claim_jobs(
            tx, BOOT, [Spot(KIND)], KNOWS, slots=CLAIMED, suspects=0, promote=True
        )

    def board(tx: "Transaction") -> object:
        return insights.count_jobs(tx), insights.count_kinds(tx), insights.funnel(tx)

    def page(**which: Any) -> Question:
        return lambda tx: insights.list_jobs(tx, limit=PAGE, **which)

    return {
        "claim": (same(claim), True),
        "tick": (lambda side: dogs[side].recover, True),
        "stuck": (same(insights.stuck), False),
        "counters": (same(board), False),
        "list_state": (same(page(state=State.DEAD)), False),
        "list_kind": (same(page(kind=RARE)), False),
        "list_old_kind": (same(page(kind=OLD)), False),
        "list_batch": (lambda side: page(batch=middles[side]), False),
    }


def middle_batch(tx: "Transaction") -> int:
    from retoma.db import adhoc

    [[last]] = tx.all(adhoc("SELECT max(id) FROM batches"))
    return (int(last) + 1) // 2


async def timed(database: "Database", question: Question, writes: bool) -> float:
    def ask(tx: Any) -> float:
        began = perf_counter()
        question(tx)
        return perf_counter() - began

    if writes:
        return await database.write(ask, verb="bench")
    return await database.read(ask)
