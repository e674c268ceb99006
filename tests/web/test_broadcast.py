"""Read once, rendered once per channel, told to everybody: whole, in order, and nothing foreign."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from retoma import Context, Retoma
from retoma.db import Database, Unfit
from retoma.engine import store
from retoma.engine.ports import Clock
from retoma.engine.query import tail
from retoma.web import broadcast
from retoma.web.broadcast import Broadcaster, Everything, Guard, Listener, nobody_asks
from retoma.web.stream import EventStream
from tests.engine.aids import eventually, submit

PATIENCE = 60  # seconds of a loaded machine


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a poll longer than it takes."""
    monkeypatch.setattr(broadcast, "LOOK", 0.02)
    monkeypatch.setattr(broadcast, "AWAY", 0.02)


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
        if "event" not in fields:  # a greeting
            return await self.next()
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
        broadcaster = Broadcaster(app.database, clock)
        yield await app.database(), broadcaster
        await broadcaster.close()


@asynccontextmanager
async def listening(
    broadcaster: Broadcaster,
    channel: Everything | None = None,
    last: str | None = None,
    guard: Guard = nobody_asks,
) -> AsyncIterator[Reader]:
    hearing = await broadcaster.listen(channel or Everything(), last, guard)
    try:
        async with aclosing(hearing.chunks()) as chunks:
            yield Reader(chunks)
    finally:
        hearing.leave()


async def test_who_listens_hears_what_happens_from_then_on(database_url):
    async with live(database_url) as (database, broadcaster):
        await submit(database, 2)
        async with listening(broadcaster, Everything()) as reader:
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
        async with listening(broadcaster, Everything()) as reader:
            await reader.next()
            await submit(database, 1)
            await reader.jobs(1)
        await submit(database, 2)

        async with listening(broadcaster, Everything(), reader.last) as again:
            missed = await again.jobs(2)
            await submit(database, 1)
            follows = await again.jobs(1)

        assert [(2, 1), (3, 1)] == missed
        assert [(4, 1)] == follows


@pytest.mark.parametrize("slices_of", [3, tail.SLICE])
async def test_who_was_cut_off_within_a_poll_hears_all_of_it_again(
    database_url, monkeypatch, slices_of
):
    """Cut after the second message: its id is still that of the poll before, whether more slices
    follow or only more messages."""
    monkeypatch.setattr(tail.between, "__defaults__", (tail.BEGINNING, slices_of))
    async with live(database_url) as (database, broadcaster):
        async with listening(broadcaster, Everything()) as reader:
            await reader.next()
            await submit(database, 10)
            assert [(1, 1), (2, 1)] == await reader.jobs(2)

        async with listening(broadcaster, Everything(), reader.last) as again:
            assert [(n, 1) for n in range(1, 11)] == await again.jobs(10)


@pytest.mark.parametrize("cursor", ["x", "", "0/1:2:", "a" * 10_000])
async def test_a_cursor_nobody_knows_is_answered_by_a_reset(database_url, cursor):
    async with live(database_url) as (database, broadcaster):
        await submit(database, 2)
        async with listening(broadcaster, Everything(), cursor) as reader:
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
        broadcaster = Broadcaster(app.database)
        wanted = {
            "kind": Everything(kind="mine"),
            "batch": Everything(batch=1),
            "job": Everything(job=2),
            "audit": Everything(job=0, audit=True),
        }
        doors = AsyncExitStack()
        readers = {
            name: await doors.enter_async_context(listening(broadcaster, channel))
            for name, channel in wanted.items()
        }
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
        await doors.aclose()
        await broadcaster.close()


async def test_many_listeners_cost_the_database_no_more_than_one(database_url):
    async with live(database_url) as (database, broadcaster):
        asked: Counter[str] = Counter()
        read = database.read

        async def counting(fn: Any, **how: Any) -> Any:
            asked["read"] += 1
            return await read(fn, **how)

        database.read = counting  # type: ignore[method-assign]
        doors = AsyncExitStack()
        readers = [await doors.enter_async_context(listening(broadcaster)) for _ in range(50)]
        for reader in readers:
            await reader.next()
        before = asked["read"]
        await submit(database, 20)
        heard = [await reader.jobs(20) for reader in readers]
        polls = (asked["read"] - before) / 2  # the cursor of now, and what came before it

        assert [heard[0]] * 50 == heard
        assert polls < 50
        await doors.aclose()


async def test_a_heartbeat_comes_every_15_s_by_name_and_moves_the_cursor(
    database_url, test_clock
):
    async with (
        live(database_url) as (database, broadcaster),
        listening(broadcaster, Everything(job=99)) as reader,
    ):
        hello = await reader.next()
        await submit(database, 1)
        test_clock.jump(5)
        async with listening(broadcaster) as other:
            await other.next()
            await submit(database, 1)
            follows = await other.next()
        assert follows is not None
        assert "job" == follows.name  # and no heartbeat yet
        for _ in range(3):
            test_clock.jump(15)
            heard = await reader.next()
            assert heard is not None
            assert "heartbeat" == heard.name

        assert hello is not None
        assert heard is not None
        assert heard.id not in (None, hello.id)


async def test_who_does_not_keep_up_is_told_and_let_go(monkeypatch):
    monkeypatch.setattr(broadcast, "BEHIND", 100)
    slow = Listener(Everything())
    for n in range(20):
        slow.tell(b"id: %d\nevent: job\ndata: {}\n\n" % n)

    told = [chunk async for chunk in slow.chunks()]

    assert [broadcast.message("dropped", {"reason": "too_slow"})] == told


async def test_who_may_not_hear_on_is_told_with_the_next_heartbeat_and_others_hear_on(
    database_url, test_clock
):
    """Whoever comes with the same key is asked about once."""
    asked: Counter[str] = Counter()
    allowed = {"Vera", "Olga"}

    @dataclass(frozen=True)
    class Still:
        who: str

        async def __call__(self) -> bool:
            asked[self.who] += 1
            return self.who in allowed

    async with (
        live(database_url) as (database, broadcaster),
        listening(broadcaster, guard=Still("Vera")) as vera,
        listening(broadcaster, guard=Still("Olga")) as olga,
        listening(broadcaster, guard=Still("Olga")) as olga_again,
    ):
        for each in (vera, olga, olga_again):
            await each.next()
        allowed.remove("Vera")
        test_clock.jump(15)
        told = await vera.next()
        await submit(database, 1)

        assert told is not None
        assert ("dropped", {"reason": "not_allowed"}) == (told.name, told.data)
        assert await vera.next() is None
        assert [(1, 1)] == await olga.jobs(1) == await olga_again.jobs(1)
        assert {"Vera": 1, "Olga": 1} == asked


async def test_who_may_not_hear_on_is_not_told_what_was_missed_either(
    database_url, monkeypatch, test_clock
):
    """Let go between two slices of a long replay."""
    monkeypatch.setattr(tail.between, "__defaults__", (tail.BEGINNING, 3))
    may = True

    async def guard() -> bool:
        return may

    async with live(database_url) as (database, broadcaster):
        async with listening(broadcaster) as reader:
            await reader.next()
        await eventually(lambda: resting(broadcaster))
        await submit(database, 30)
        async with listening(broadcaster, None, reader.last, guard) as again:
            assert [(1, 1), (2, 1), (3, 1)] == await again.jobs(3)
            may = False
            test_clock.jump(15)
            await eventually(lambda: ended(broadcaster))
            told = await again.next()

            assert told is not None
            assert "dropped" == told.name
            assert await again.next() is None


async def resting(broadcaster: Broadcaster) -> bool:
    return not broadcaster._polls


async def ended(broadcaster: Broadcaster) -> bool:
    return all(listener.over.is_set() for listener in broadcaster._listeners)


async def test_a_database_that_goes_away_within_a_poll_leaves_nobody_with_a_hole(
    database_url, monkeypatch
):
    async with live(database_url) as (database, broadcaster):
        async with listening(broadcaster) as reader:
            await reader.next()
            with monkeypatch.context() as trouble:
                trouble.setattr(tail, "between", away)
                await submit(database, 3)
                dropped = await reader.next()
            assert dropped is not None
            assert ("dropped", {"reason": "database_away"}) == (dropped.name, dropped.data)
            assert await reader.next() is None

        async with listening(broadcaster, None, reader.last) as again:
            assert [(1, 1), (2, 1), (3, 1)] == await again.jobs(3)


async def test_a_database_that_goes_away_within_a_replay_leaves_nobody_with_a_hole(
    database_url, monkeypatch
):
    """What happened meanwhile waits behind what was missed, and is not told without it."""
    async with live(database_url) as (database, broadcaster):
        async with listening(broadcaster) as reader:
            await reader.next()
        await eventually(lambda: resting(broadcaster))
        await submit(database, 3)
        hearing = await broadcaster.listen(Everything(), reader.last)
        hearing.listener.tell(b"id: later\nevent: job\ndata: {}\n\n")
        with monkeypatch.context() as trouble:
            trouble.setattr(tail, "between", away)
            told = [chunk async for chunk in hearing.chunks()]
        hearing.leave()

        last = broadcast.message("dropped", {"reason": "database_away"})
        assert [broadcast.GREETING, last] == told


def away(*_: Any) -> None:
    raise Unfit("gone")


async def test_a_poll_that_breaks_is_told_and_the_next_who_comes_is_heard(
    database_url, monkeypatch
):
    async with live(database_url) as (database, broadcaster):
        async with listening(broadcaster) as reader:
            await reader.next()
            with monkeypatch.context() as trouble:
                trouble.setattr(tail, "between", lambda *_: 1 / 0)
                await submit(database, 1)
                dropped = await reader.next()
            assert dropped is not None
            assert ("dropped", {"reason": "broken"}) == (dropped.name, dropped.data)

        async with listening(broadcaster, None, reader.last) as again:
            assert [(1, 1)] == await again.jobs(1)


async def test_who_has_missed_too_much_begins_anew(database_url, monkeypatch):
    monkeypatch.setattr(tail.knows, "__defaults__", (3,))
    async with live(database_url) as (database, broadcaster):
        async with listening(broadcaster) as reader:
            await reader.next()
        await eventually(lambda: resting(broadcaster))
        await submit(database, 3)
        async with listening(broadcaster, None, reader.last) as near:
            assert [(1, 1), (2, 1), (3, 1)] == await near.jobs(3)
        await eventually(lambda: resting(broadcaster))
        await submit(database, 1)
        async with listening(broadcaster, None, reader.last) as far:
            heard = await far.next()

        assert heard is not None
        assert "reset" == heard.name


async def test_who_listens_while_the_database_is_restored_begins_anew(database_url):
    told: dict[str, Any] = {"skip": 0, "actor": "me", "subject": "a", "details": "{}"}
    async with (
        live(database_url) as (database, broadcaster),
        listening(broadcaster) as reader,
    ):
        await reader.next()
        await database.write(lambda tx: store.reopen(tx, "second", **told), verb="restore")
        heard = await reader.next()
        await submit(database, 1)

        assert heard is not None
        assert ("reset", True) == (heard.name, str(heard.id).startswith("second/"))
        assert [1] == [seq for _, seq in await reader.jobs(1)]


async def test_closing_ends_every_stream_and_whoever_comes_later_too(database_url):
    async with live(database_url) as (database, broadcaster), AsyncExitStack() as doors:
        opened = [await doors.enter_async_context(listening(broadcaster)) for _ in range(3)]
        for reader in opened:
            await reader.next()
        await submit(database, 1)

        await broadcaster.close()
        late = await doors.enter_async_context(listening(broadcaster, None, opened[0].last))

        assert [None] * 4 == [await reader.next() for reader in (*opened, late)]


# — as an answer —


async def test_who_does_not_even_take_its_last_words_does_not_keep_us(
    database_url, monkeypatch
):
    monkeypatch.setattr(broadcast, "LAST_WORDS", 0.1)
    monkeypatch.setattr(broadcast, "BEHIND", 100)
    blocked, sent = asyncio.Event(), []

    async def send(message: Any) -> None:
        sent.append(message)
        if len(sent) == 3:
            blocked.set()
            await asyncio.Event().wait()

    async with live(database_url) as (database, broadcaster):
        hearing = await broadcaster.listen(Everything())
        answer = asyncio.create_task(EventStream(hearing)({}, still_there, send))
        await asyncio.wait_for(blocked.wait(), PATIENCE)
        while not hearing.listener.over.is_set():
            await submit(database, 2)
            await asyncio.sleep(broadcast.LOOK)
        await asyncio.wait_for(answer, PATIENCE)

        assert 0 == broadcaster.listeners
        assert 3 == len(sent)


async def test_who_leaves_before_anything_was_told_is_forgotten(database_url):
    async def gone() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        await asyncio.Event().wait()

    async with live(database_url) as (_, broadcaster):
        hearing = await broadcaster.listen(Everything())
        await asyncio.wait_for(EventStream(hearing)({}, gone, send), PATIENCE)

        assert 0 == broadcaster.listeners


async def still_there() -> Any:
    await asyncio.Event().wait()
