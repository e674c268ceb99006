"""Whatever happens is read once, rendered once per channel, and handed to everybody as bytes.

However many browsers listen, the database is asked by one poll at a time. A listener that came with a
cursor is first told what it missed, up to the very poll from which it listens: no gap, nothing foreign.
One that does not keep up is told so and let go; it comes back with its cursor.
"""

import asyncio
import json
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Hashable,
    Iterable,
)
from contextlib import aclosing
from contextvars import Context
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from retoma.access import is_of_access
from retoma.db import Database, DatabaseError
from retoma.engine.log import get_logger
from retoma.engine.ports import Clock
from retoma.engine.query import tail
from retoma.engine.query.tail import BEGINNING, Noted, Place, Slice, Told
from retoma.web.wire import shown_details

LOOK = 0.25  # seconds between two polls while somebody listens
HEARTBEAT = 15.0  # seconds; a page that hears nothing for longer polls by itself
BEHIND = 8 * 1024 * 1024  # bytes that may wait for one listener
AWAY = 1.0  # seconds until a database that did not answer is asked again
LAST_WORDS = 15.0  # seconds for a reader to take what it is told at the end
LEAVING = 1.0  # the same where the whole house leaves
# How long a reader waits before it comes back: all of them at once is what a restart brings.
GREETING: Final = b"retry: 1000\n\n"

log = get_logger("retoma.web")


class Why(StrEnum):
    """Why somebody was let go."""

    BROKEN = "broken"  # our fault; the log knows
    DATABASE_AWAY = "database_away"
    NOT_ALLOWED = "not_allowed"  # the key, the session or its role is not what it was
    TOO_SLOW = "too_slow"


class Channel(Protocol):
    """What one sort of listener wants to hear, as the messages it is told in."""

    @property
    def key(self) -> Hashable:
        """Listeners with the same key share every byte."""

    def messages(self, part: Slice) -> list[bytes]:
        """What of this part concerns it: whole messages, but for their ids."""


# Asked whether a listener may hear on: with every heartbeat, and whenever keys, sessions or people
# have changed. Equal ones are asked once.
Guard = Callable[[], Awaitable[bool]]


async def nobody_asks() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Everything:
    """Events and audit lines as JSON, all or those that match."""

    kind: str | None = None
    batch: int | None = None
    job: int | None = None
    stacks: bool = False  # the inside of our programs is not for everybody
    audit: bool = False  # nor is what people did

    @property
    def key(self) -> Hashable:
        return self

    def messages(self, part: Slice) -> list[bytes]:
        told = [
            message("job", _event(event, stacks=self.stacks))
            for event in part.events
            if self._wants(event)
        ]
        noted = [message("audit", _line(line)) for line in part.lines] if self.audit else []
        return told + noted

    def _wants(self, event: Told) -> bool:
        return (
            (self.kind is None or event.kind == self.kind)
            and (self.batch is None or event.batch == self.batch)
            and (self.job is None or event.job == self.job)
        )


def message(name: str, data: Any) -> bytes:
    """One message, but for its id."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"event: {name}\ndata: {text}\n\n".encode()


def _event(told: Told, *, stacks: bool) -> dict[str, Any]:
    return {
        "job": told.job,
        "seq": told.seq,
        "epoch": told.epoch,
        "type": told.type,
        "at": told.at.isoformat(),
        "actor": told.actor,
        "details": shown_details(told.details, stacks=stacks),
        "kind": told.kind,
        "batch": told.batch,
    }


def _line(noted: Noted) -> dict[str, Any]:
    return {
        "id": noted.id,
        "at": noted.at.isoformat(),
        "actor": noted.actor,
        "verb": noted.verb,
        "subject": noted.subject,
        "details": noted.details,
    }


def _with_ids(messages: list[bytes], old: str, new: str | None) -> bytes:
    """Only the last message of a poll stands at its end: whoever is cut off before hears all again."""
    if not messages:
        return b""
    before = f"id: {old}\n".encode()
    last = before if new is None else f"id: {new}\n".encode()
    return b"".join([*(before + each for each in messages[:-1]), last + messages[-1]])


class Listener:
    """One open stream. Bytes go in at one end and are awaited at the other."""

    def __init__(self, channel: Channel, guard: Guard = nobody_asks, owner: str = "") -> None:
        self.channel = channel
        self.guard = guard
        self.owner = owner  # the person who listens
        self.over = asyncio.Event()  # nothing comes any more but what waits
        self.patience = LAST_WORDS  # seconds for that
        self.silenced = False  # not even what was missed may be told
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._ring = asyncio.Event()

    def tell(self, chunk: bytes) -> None:
        if self.over.is_set() or not chunk:
            return
        if self._size + len(chunk) > BEHIND and self._waiting:
            self.drop(Why.TOO_SLOW)
        else:
            self._waiting.append(chunk)
            self._size += len(chunk)
            self._ring.set()

    def drop(self, why: Why) -> None:
        """What waits is forgotten, not told with a hole in it; the cursor it has stays good."""
        if self.over.is_set():
            return
        self.silenced = why is Why.NOT_ALLOWED
        self._end()
        self._waiting.append(message("dropped", {"reason": why}))

    def close(self) -> None:
        """The house leaves: nothing more is told, and whoever comes back begins there."""
        self.silenced = True
        self.patience = LEAVING
        self._end()

    def _end(self) -> None:
        self._waiting.clear()
        self._size = 0
        self.over.set()
        self._ring.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            while self._waiting:
                chunk = self._waiting.popleft()
                self._size = max(self._size - len(chunk), 0)
                yield chunk
            if self.over.is_set():
                return
            self._ring.clear()
            await self._ring.wait()


@dataclass(frozen=True, slots=True)
class Hearing:
    """A listener that has joined, and all it will be told."""

    listener: Listener
    first: AsyncGenerator[bytes, None]
    leave: Callable[[], None]  # for whoever has it to call, also if nothing was ever read

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield GREETING
        try:
            async with aclosing(self.first) as chunks:
                async for chunk in chunks:
                    if self.listener.silenced:
                        break
                    yield chunk
        except DatabaseError as error:
            # What came since waits behind what was missed, and is forgotten with it.
            log.warning("stream.trouble", error=str(error))
            self.listener.drop(Why.DATABASE_AWAY)
        async for chunk in self.listener.chunks():
            yield chunk


class Broadcaster:
    """One per process; polls only while somebody listens."""

    def __init__(
        self, database: Callable[[], Awaitable[Database]], clock: Clock | None = None
    ) -> None:
        self._database = database
        self._clock = clock or Clock()
        self._listeners: set[Listener] = set()
        self._cursor = ""
        self._polling: asyncio.Task[None] | None = None
        self._over = False
        self._is_unasked = False  # whether somebody may have lost the right to listen

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def listeners_of(self, owner: str) -> int:
        return sum(each.owner == owner for each in self._listeners)

    async def listen(
        self,
        channel: Channel,
        last: str | None = None,
        guard: Guard = nobody_asks,
        owner: str = "",
    ) -> Hearing:
        """Everything from now on; where the last cursor is known, everything since then."""
        listener = Listener(channel, guard, owner)
        joined = await self._join(listener)
        first = self._missed(channel, last, joined)
        return Hearing(listener, first, lambda: self._listeners.discard(listener))

    async def close(self) -> None:
        """Every stream ends; whoever comes later hears nothing."""
        self._over = True
        for listener in self._listeners:
            listener.close()
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)
            self._polling = None

    # — one comes —

    async def _join(self, listener: Listener) -> str:
        """From which cursor on the listener hears everything."""
        if not self._polls:
            cursor = await self._head()
            if not self._polls:  # else somebody was quicker
                self._cursor = cursor
                # In a context of its own: it logs for everybody, not for who came first.
                self._polling = asyncio.create_task(self._poll_while_heard(), context=Context())
        if self._over:
            listener.close()
        self._listeners.add(listener)
        return self._cursor

    @property
    def _polls(self) -> bool:
        return self._polling is not None and not self._polling.done()

    async def _missed(
        self, channel: Channel, last: str | None, now: str
    ) -> AsyncGenerator[bytes, None]:
        if last is None:
            yield _with_ids([message("hello", {})], now, now)
            return
        if last == now:
            return
        database = await self._database()
        if not await database.read(lambda tx: tail.knows(tx, last)):
            yield _with_ids([message("reset", {})], now, now)
            return
        async for part in self._parts(last, now):
            chunk = _with_ids(channel.messages(part), last, now if part.next is None else None)
            if chunk:
                yield chunk

    # — all are told —

    async def _poll_while_heard(self) -> None:
        try:
            await self._poll_and_beat()
        except Exception:  # nobody awaits us: the log is told
            log.exception("stream.broken")
        finally:  # nobody is left to hear nothing: who comes back is told what was missed
            for listener in self._listeners:
                listener.drop(Why.BROKEN)

    async def _poll_and_beat(self) -> None:
        beat = self._clock.now() + HEARTBEAT
        while self._listeners:
            await self._clock.sleep(LOOK)
            beats = self._clock.now() >= beat
            self._is_unasked = self._is_unasked or beats
            try:
                if self._is_unasked:
                    await self._turn_away()
                await self._poll()
                if self._is_unasked:
                    await self._turn_away()
            except DatabaseError as error:
                log.warning("stream.trouble", error=str(error))
                await self._clock.sleep(AWAY)
            if beats:
                beat = self._clock.now() + HEARTBEAT
                alive = _with_ids([message("heartbeat", {})], self._cursor, self._cursor)
                for listener in self._listeners:
                    listener.tell(alive)

    async def _turn_away(self) -> None:
        """Whoever may not hear on is told so and let go."""
        answers: dict[Guard, bool] = {}
        for listener in tuple(self._listeners):
            guard = listener.guard
            if guard not in answers:
                answers[guard] = await guard()
            if not answers[guard]:
                listener.drop(Why.NOT_ALLOWED)
        self._is_unasked = False

    async def _poll(self) -> None:
        old, new = self._cursor, await self._head()
        if new == old:
            return
        # Who joins from here on hears from the next poll on, and is told so by this cursor.
        self._cursor = new
        audience = tuple(self._listeners)
        if not tail.of_one_life(old, new):  # restored meanwhile: whoever listens begins anew
            for listener in audience:
                listener.tell(_with_ids([message("reset", {})], new, new))
            return
        try:
            async for part in self._parts(old, new):
                self._tell(audience, part, old, new if part.next is None else None)
        except DatabaseError:
            # They have heard a part of it: each comes back with the cursor of what it had whole.
            for listener in audience:
                listener.drop(Why.DATABASE_AWAY)
            raise

    def _tell(
        self, audience: Iterable[Listener], part: Slice, old: str, new: str | None
    ) -> None:
        if any(is_of_access(line.verb) for line in part.lines):
            self._is_unasked = (
                True  # a key was revoked, perhaps: ask before anything more is said
            )
        rendered: dict[Hashable, bytes] = {}
        for listener in audience:
            key = listener.channel.key
            if key not in rendered:
                rendered[key] = _with_ids(listener.channel.messages(part), old, new)
            listener.tell(rendered[key])

    async def _head(self) -> str:
        return await (await self._database()).read(tail.head)

    async def _parts(self, old: str, new: str) -> AsyncIterator[Slice]:
        database = await self._database()
        place: Place | None = BEGINNING
        while place is not None:
            after = place
            part = await database.read(lambda tx: tail.between(tx, old, new, after))  # noqa: B023
            yield part
            place = part.next
