"""What has happened since a moment: everything, once, in order, and held up by nobody."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from retoma import Context, Retoma
from retoma.db import Database
from retoma.db.statements import Text
from retoma.engine.query import tail
from retoma.engine.query.page import SQL
from retoma.engine.query.tail import Noted, Place, Told
from retoma.engine.testing import drain
from tests.db.test_plans import ANALYZE, alone
from tests.engine.aids import about, change, rows, submit


@pytest.fixture
def opened(database_url: str) -> Any:
    """A database that is there, as something to enter."""
    return opened_at(database_url)


@asynccontextmanager
async def opened_at(url: str) -> AsyncIterator[Database]:
    async with Retoma(url) as app:
        await app.upgrade()
        yield await app.database()


async def head(database: Database) -> str:
    return await database.read(tail.head)


async def since(
    database: Database, old: str, most: int = tail.SLICE
) -> tuple[list[Told], list[Noted], str]:
    """One poll, slice by slice, and the cursor it ends at."""
    new = await head(database)
    events: list[Told] = []
    lines: list[Noted] = []
    place: Place | None = tail.BEGINNING
    while place is not None:
        part = await database.read(
            lambda tx, after=place: tail.between(tx, old, new, after, most)  # type: ignore[misc]
        )
        assert len(part.events) <= most
        events += part.events
        lines += part.lines
        place = part.next
    return events, lines, new


async def test_a_poll_brings_what_came_after_the_cursor_and_nothing_else(opened):
    async with opened as database:
        await submit(database, 2)
        start = await head(database)
        await submit(database, 3)

        events, _, new = await since(database, start)
        again, _, _ = await since(database, new)

        assert [(3, 1, "submitted"), (4, 1, "submitted"), (5, 1, "submitted")] == [
            (e.job, e.seq, str(e.type)) for e in events
        ]
        assert {(about().kind, None)} == {(e.kind, e.batch) for e in events}
        assert [] == again


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
async def test_slices_of_any_size_bring_the_same(opened, most):
    async with opened as database:
        start = await head(database)
        await submit(database, 9)

        events, _, _ = await since(database, start, most)

        assert list(range(1, 10)) == [e.job for e in events]


async def test_lines_of_the_audit_log_come_too(database_url):
    async with Retoma(database_url) as app:
        await app.upgrade()
        start = await head(await app.database())
        await app.pools.declare("proxies", {"a": 1, "b": 2})

        _, lines, _ = await since(await app.database(), start)

        assert lines
        assert all("proxies" in line.subject for line in lines)


async def test_everything_comes_once_and_each_job_in_its_order_while_runners_work(database_url):
    """Polled all the while, by a reader that knows nothing of commits."""
    async with Retoma(database_url) as app, Retoma(database_url) as reader:

        @app.job
        async def work(ctx: Context, n: int) -> int:
            return await ctx.step("one", same, n)

        await app.upgrade()
        database = await reader.database()
        cursor = await head(database)
        seen: dict[int, list[int]] = defaultdict(list)

        async def poll() -> None:
            nonlocal cursor
            events, _, cursor = await since(database, cursor, most=50)
            for event in events:
                seen[event.job].append(event.seq)

        async def poll_for_ever() -> None:
            while True:
                await poll()

        polling = asyncio.create_task(poll_for_ever())
        await app.submit_many(work, range(200))
        await drain(app)
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)
        await poll()

        assert {job: [1, 2, 3, 4] for job in range(1, 201)} == dict(seen)


async def same(n: int) -> int:
    return n


async def test_an_open_transaction_elsewhere_holds_up_nobody_and_loses_nothing(postgres_url):
    """The late commit comes in the poll after it."""
    async with Retoma(postgres_url) as app:
        await app.upgrade()
        database = await app.database()
        start = await head(database)
        with psycopg.connect(postgres_url) as slow:
            slow.execute(
                "INSERT INTO retoma.audit (at, verb, subject) VALUES (now(), 'slow', 'x')"
            )
            await submit(database, 2)
            events, none, between = await since(database, start)
            slow.commit()
        _, late, _ = await since(database, between)

        assert [1, 2] == [e.job for e in events]
        assert [] == none
        assert ["slow"] == [line.verb for line in late]


async def test_an_event_that_commits_late_comes_in_the_poll_after_it(postgres_url):
    """It is older than others that were told of before it: whoever goes by numbers never sees it."""
    async with Retoma(postgres_url) as app:
        await app.upgrade()
        database = await app.database()
        await submit(database, 1)
        start = await head(database)
        with psycopg.connect(postgres_url) as slow:
            slow.execute(
                "INSERT INTO retoma.events (job, seq, epoch, type, at, actor)"
                " VALUES (1, 2, 0, 'cancel_requested', now(), 'slow')"
            )
            await submit(database, 2)
            events, _, between = await since(database, start)
            slow.commit()
        late, _, _ = await since(database, between)

        assert [(2, 1), (3, 1)] == [(e.job, e.seq) for e in events]
        assert [(1, 2)] == [(e.job, e.seq) for e in late]


@pytest.mark.parametrize(
    "cursor",
    ["", "/", "x", "1/2/3", "'; DROP TABLE jobs", "\0", "{}/", "{}/1", "{}/1:2:3,", "{}/9:1:", "{}/1.2:3",
     "{}/99999999.1.1:0", "{}/1:99999999999:", "{}/5:9:7,6", "{}/1.1.1:-1", "{}/٣:٤:", "{}/0:0:"],
)  # fmt: skip
async def test_a_cursor_from_a_stranger_is_unknown_and_does_no_harm(opened, cursor):
    async with opened as database:
        await submit(database, 1)
        ours = (await head(database)).partition("/")[0]

        assert not await database.read(lambda tx: tail.knows(tx, cursor.format(ours)))


async def test_a_cursor_of_ours_is_known_and_one_of_another_database_is_not(opened):
    async with opened as database:
        at_first = await head(database)
        await submit(database, 1)
        later = await head(database)
        other = "0" * len(later.partition("/")[0]) + "/" + later.partition("/")[2]

        assert await database.read(lambda tx: tail.knows(tx, at_first))
        assert await database.read(lambda tx: tail.knows(tx, later))
        assert not await database.read(lambda tx: tail.knows(tx, other))


async def test_where_retention_took_the_row_a_cursor_stands_at_it_is_unknown(tmp_path):
    """Its number may be given to another: going on from it could pass over that one."""
    async with opened_at(f"sqlite:///{tmp_path}/work.db") as database:
        await submit(database, 2)
        cursor = await head(database)
        await change(database, "DELETE FROM jobs")
        await change(database, "DELETE FROM events")

        assert not await database.read(lambda tx: tail.knows(tx, cursor))
        await submit(database, 3)
        assert not await database.read(lambda tx: tail.knows(tx, cursor))
        assert [(3,)] == await rows(database, "SELECT count(*) FROM events")


async def test_a_poll_walks_an_index_however_long_the_history(postgres_url):
    async with opened_at(postgres_url) as database:
        await submit(database, 3000)
        await database.write(lambda tx: tx.run(ANALYZE), verb="test")
        start = await head(database)
        await submit(database, 3)
        new = await head(database)
        [text] = SQL.tail_events.postgres
        asked = {
            "old": start.partition("/")[2],
            "new": new.partition("/")[2],
            "job": 0,
            "seq": 0,
            "most": 100,
        }

        plan = await database.read(
            lambda tx: "\n".join(
                line
                for (line,) in tx.all(alone(Text(f"EXPLAIN {text.sql}", answers=True)), **asked)
            )
        )

        assert 2 == plan.count("events_xid"), plan
        assert "Seq Scan" not in plan, plan
