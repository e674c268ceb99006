"""Read once, rendered once per channel, told to everybody: whole, in order, and nothing foreign."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

import pytest

from retoma import Context, Retoma
from retoma.db import Database, Unfit
from retoma.engine.insights import tail
from retoma.engine.ports import Clock
from retoma.web import broadcast
from retoma.web.broadcast import Broadcaster, Everything, Listener
from tests.engine.aids import eventually, submit

PATIENCE = 20


class Heard(NamedTuple):
    id: str | None
    name: str
    data: Any


class Reader:
    """Takes messages apart as a browser would."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._text = ""
        self.last: str | None = None

    async def next(self) -> Heard | None:
        """None: the stream has ended."""
        while "\n\n" not in self._text:
            try:
                chunk = await asyncio.wait_for(anext(self._chunks), PATIENCE)
            except StopAsyncIteration:
                return None
            self._text += chunk.decode()
        one, _, self._text = self._text.partition("\n\n")
        fields = dict(line.split(": ", 1) for line in one.split("\n"))
        self.last = fields.get("id", self.last)
        return Heard(fields.get("id"), fields["event"], json.loads(fields["data"]))

    async def jobs(self, n: int) -> list[tuple[int, int]]:
        """The next so many events; nothing else may come between but heartbeats."""
        found: list[tuple[int, int]] = []
        while len(found) < n:
            heard = await self.next()
            assert heard is not None
            if heard.name != "heartbeat":
                assert heard.name == "job"
                found.append((heard.data["job"], heard.data["seq"]))
        return found


@asynccontextmanager
async def live(
    url: str, clock: Clock | None = None
) -> AsyncIterator[tuple[Database, Broadcaster]]:
    async with Retoma(url) as app:
        await app.upgrade()
        broadcaster = Broadcaster(await app.database(), clock)
        yield await app.database(), broadcaster
        await broadcaster.close()


async def test_who_listens_hears_what_happens_from_then_on(database_url):
    async with live(database_url) as (database, broadcaster):
        await submit(database, 2)
        async with aclosing(broadcaster.listen(Everything())) as chunks:
            reader = Reader(chunks)
            hello = await reader.next()
            await submit(database, 3)
            heard = await reader.jobs(3)

        assert hello is not None
        assert ("hello", True) == (hello.name, bool(hello.id))
        assert [(3, 1), (4, 1), (5, 1)] == heard
        await eventually(lambda: nobody(broadcaster))


async def nobody(broadcaster: Broadcaster) -> bool:
    return broadcaster.listeners == 0


async def test_who_comes_back_with_a_cursor_hears_what_was_missed_and_then_what_follows(
    database_url,
):
    async with live(database_url) as (database, broadcaster):
        async with aclosing(broadcaster.listen(Everything())) as chunks:
            reader = Reader(chunks)
            await reader.next()
            await submit(database, 1)
            await reader.jobs(1)
        await submit(database, 2)

        async with aclosing(broadcaster.listen(Everything(), reader.last)) as chunks:
            again = Reader(chunks)
            missed = await again.jobs(2)
            await submit(database, 1)
            follows = await again.jobs(1)

        assert [(2, 1), (3, 1)] == missed
        assert [(4, 1)] == follows


async def test_who_was_cut_off_within_a_poll_hears_all_of_it_again(database_url, monkeypatch):
    """Slices of three, cut after the second message: its id is still that of the poll before."""
    monkeypatch.setattr(tail, "SLICE", 3)
    monkeypatch.setattr(tail.between, "__defaults__", (tail.BEGINNING, 3))
    async with live(database_url) as (database, broadcaster):
        async with aclosing(broadcaster.listen(Everything())) as chunks:
            reader = Reader(chunks)
            await reader.next()
            start = reader.last
            await submit(database, 10)
            first = [await reader.next() for _ in range(2)]
            assert [start, start] == [heard.id for heard in first if heard is not None]

        async with aclosing(broadcaster.listen(Everything(), reader.last)) as chunks:
            assert [(n, 1) for n in range(1, 11)] == await Reader(chunks).jobs(10)


@pytest.mark.parametrize("cursor", ["x", "", "0/1:2:", "a" * 10_000])
async def test_a_cursor_nobody_knows_is_answered_by_a_reset(database_url, cursor):
    async with live(database_url) as (database, broadcaster):
        await submit(database, 2)
        async with aclosing(broadcaster.listen(Everything(), cursor)) as chunks:
            reader = Reader(chunks)
            heard = await reader.next()
            await submit(database, 1)

            assert heard is not None
            assert "reset" == heard.name
            assert [(3, 1)] == await reader.jobs(1)


async def test_each_hears_what_it_asked_for_and_nothing_foreign(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def mine(ctx: Context, n: int) -> None: ...

        @app.job
        async def theirs(ctx: Context, n: int) -> None: ...

        await app.upgrade()
        broadcaster = Broadcaster(await app.database())
        wanted = {
            "kind": Everything(kind="mine"),
            "batch": Everything(batch=1),
            "job": Everything(job=2),
            "audit": Everything(job=0, audit=True),
        }
        opened = {name: broadcaster.listen(channel) for name, channel in wanted.items()}
        readers = {name: Reader(chunks) for name, chunks in opened.items()}
        for reader in readers.values():
            await reader.next()
        await app.submit_many(mine, range(2))
        await app.submit_many(theirs, range(2))
        await app.submit(mine, 9)
        await app.pools.declare("proxies", {"a": 1})

        assert [1, 2, 5] == [job for job, _ in await readers["kind"].jobs(3)]
        assert [1, 2] == [job for job, _ in await readers["batch"].jobs(2)]
        assert [2] == [job for job, _ in await readers["job"].jobs(1)]
        told = await readers["audit"].next()
        assert told is not None
        assert "audit" == told.name
        for chunks in opened.values():
            await chunks.aclose()
        await broadcaster.close()


async def test_many_listeners_cost_the_database_no_more_than_one(database_url):
    async with live(database_url) as (database, broadcaster):
        asked: Counter[str] = Counter()
        read = database.read

        async def counting(fn: Any, **how: Any) -> Any:
            asked["read"] += 1
            return await read(fn, **how)

        database.read = counting  # type: ignore[method-assign]
        opened = [broadcaster.listen(Everything()) for _ in range(50)]
        readers = [Reader(chunks) for chunks in opened]
        for reader in readers:
            await reader.next()
        before = asked["read"]
        await submit(database, 20)
        heard = [await reader.jobs(20) for reader in readers]
        polls = (asked["read"] - before) / 2  # the cursor of now, and what came before it

        assert [heard[0]] * 50 == heard
        assert polls < 50
        for chunks in opened:
            await chunks.aclose()


async def test_a_heartbeat_comes_by_name_and_moves_the_cursor(database_url, monkeypatch):
    monkeypatch.setattr(broadcast, "HEARTBEAT", 0.0)
    async with live(database_url) as (database, broadcaster):
        chunks = broadcaster.listen(Everything(job=99))
        reader = Reader(chunks)
        await reader.next()
        await submit(database, 1)
        heard = await reader.next()
        await chunks.aclose()

        assert heard is not None
        assert "heartbeat" == heard.name
        assert heard.id is not None


async def test_who_does_not_keep_up_is_told_and_let_go_and_others_hear_on(monkeypatch):
    monkeypatch.setattr(broadcast, "BEHIND", 100)
    slow = Listener(Everything())
    for n in range(20):
        slow.tell(b"id: %d\nevent: job\ndata: {}\n\n" % n)

    told = [chunk async for chunk in slow.chunks()]

    assert [broadcast.message("dropped", {"reason": "too slow"})] == told


async def test_a_database_that_goes_away_within_a_poll_leaves_nobody_with_a_hole(
    database_url, monkeypatch
):
    async with live(database_url) as (database, broadcaster):
        async with aclosing(broadcaster.listen(Everything())) as chunks:
            reader = Reader(chunks)
            await reader.next()
            between = tail.between

            def away(*_: Any) -> None:
                raise Unfit("gone")

            monkeypatch.setattr(tail, "between", away)
            await submit(database, 3)
            dropped = await reader.next()
            assert dropped is not None
            assert "dropped" == dropped.name
            assert await reader.next() is None
            monkeypatch.setattr(tail, "between", between)

        async with aclosing(broadcaster.listen(Everything(), reader.last)) as chunks:
            assert [(1, 1), (2, 1), (3, 1)] == await Reader(chunks).jobs(3)


async def test_closing_ends_every_stream(database_url):
    async with live(database_url) as (_, broadcaster):
        opened = [Reader(broadcaster.listen(Everything())) for _ in range(3)]
        for reader in opened:
            await reader.next()

        await broadcaster.close()

        assert [None] * 3 == [await reader.next() for reader in opened]
