"""Whatever happens is read once, rendered once per channel, and handed to everybody as bytes.

However many browsers listen, the database is asked by one poll at a time. A listener that came with a
cursor is first told what it missed, up to the very poll from which it listens: no gap, nothing foreign.
One that does not keep up is told so and let go; it comes back with its cursor.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from retoma.db import Database, DatabaseError
from retoma.engine.insights import tail
from retoma.engine.insights.tail import BEGINNING, Noted, Place, Slice, Told
from retoma.engine.log import get_logger
from retoma.engine.ports import Clock

LOOK = 0.25  # seconds between two polls while somebody listens
HEARTBEAT = 15.0  # seconds; a page that hears nothing for so long polls by itself
BEHIND = 8 * 1024 * 1024  # bytes that may wait for one listener
AWAY = 1.0  # seconds until a database that did not answer is asked again

log = get_logger("retoma.web")


class Channel(Protocol):
    """What one sort of listener wants to hear, as the messages it is told in."""

    @property
    def key(self) -> Hashable:
        """Listeners with the same key share every byte."""

    def messages(self, part: Slice) -> list[bytes]:
        """What of this part concerns it: whole messages, but for their ids."""


@dataclass(frozen=True, slots=True)
class Everything:
    """Events and audit lines as JSON, all or those that match."""

    kind: str | None = None
    batch: int | None = None
    job: int | None = None
    audit: bool = False  # what people did is not for everybody

    @property
    def key(self) -> Hashable:
        return self

    def messages(self, part: Slice) -> list[bytes]:
        told = [message("job", _event(event)) for event in part.events if self._wants(event)]
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


def _event(told: Told) -> dict[str, Any]:
    return {
        "job": told.job,
        "seq": told.seq,
        "epoch": told.epoch,
        "type": told.type,
        "at": told.at.isoformat(),
        "actor": told.actor,
        "details": told.details,
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

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._ring = asyncio.Event()
        self._over = False

    def tell(self, chunk: bytes) -> None:
        if self._over or not chunk:
            return
        if self._size + len(chunk) > BEHIND and self._waiting:
            self.drop("too slow")
        else:
            self._waiting.append(chunk)
            self._size += len(chunk)
            self._ring.set()

    def drop(self, reason: str) -> None:
        """What waits is forgotten, not told with a hole in it; the cursor it has stays good."""
        if self._over:
            return
        self._waiting.clear()
        self._size = 0
        self._waiting.append(message("dropped", {"reason": reason}))
        self.end()

    def end(self) -> None:
        self._over = True
        self._ring.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            while self._waiting:
                chunk = self._waiting.popleft()
                self._size = max(self._size - len(chunk), 0)
                yield chunk
            if self._over:
                return
            self._ring.clear()
            await self._ring.wait()


class Broadcaster:
    """One per process; polls only while somebody listens."""

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        self._database = database
        self._clock = clock or Clock()
        self._listeners: set[Listener] = set()
        self._cursor = ""
        self._polling: asyncio.Task[None] | None = None
        self._joining = asyncio.Lock()
        self._over = False

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    async def listen(
        self, channel: Channel, last: str | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Everything from now on; where the last cursor is known, everything since then."""
        listener = Listener(channel)
        joined = await self._join(listener)
        try:
            if last is None:
                yield _with_ids([message("hello", {})], joined, joined)
            elif last != joined:
                async for chunk in self._missed(channel, last, joined):
                    yield chunk
            async for chunk in listener.chunks():
                yield chunk
        finally:
            self._listeners.discard(listener)

    async def close(self) -> None:
        self._over = True
        for listener in self._listeners:
            listener.end()
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)
            self._polling = None

    async def _join(self, listener: Listener) -> str:
        """From which cursor on the listener hears everything."""
        async with self._joining:
            if self._polling is None or self._polling.done():
                self._cursor = await self._database.read(tail.head)
                self._polling = asyncio.create_task(self._poll_while_heard())
            if self._over:
                listener.end()
            self._listeners.add(listener)
            return self._cursor

    async def _missed(self, channel: Channel, last: str, now: str) -> AsyncIterator[bytes]:
        if not await self._database.read(lambda tx: tail.knows(tx, last)):
            yield _with_ids([message("reset", {"reason": "unknown cursor"})], now, now)
            return
        async for part in self._parts(last, now):
            chunk = _with_ids(channel.messages(part), last, now if part.next is None else None)
            if chunk:
                yield chunk

    async def _poll_while_heard(self) -> None:
        try:
            await self._poll_and_beat()
        finally:  # nobody is left to hear nothing: who comes back is told what was missed
            for listener in self._listeners:
                listener.drop("the stream broke")

    async def _poll_and_beat(self) -> None:
        beat = self._clock.now() + HEARTBEAT
        while self._listeners:
            await self._clock.sleep(LOOK)
            try:
                await self._poll()
            except DatabaseError as error:
                log.warning("stream.trouble", error=str(error))
                await self._clock.sleep(AWAY)
            if self._clock.now() >= beat:
                beat = self._clock.now() + HEARTBEAT
                alive = _with_ids([message("heartbeat", {})], self._cursor, self._cursor)
                for listener in self._listeners:
                    listener.tell(alive)

    async def _poll(self) -> None:
        old, new = self._cursor, await self._database.read(tail.head)
        # Who joins from here on hears from the next poll on, and is told so by this cursor.
        self._cursor = new
        audience = tuple(self._listeners)
        try:
            async for part in self._parts(old, new):
                self._tell(audience, part, old, new if part.next is None else None)
        except DatabaseError:
            # They have heard a part of it: each comes back with the cursor of what it had whole.
            for listener in audience:
                listener.drop("the database is away")
            raise

    def _tell(
        self, audience: Iterable[Listener], part: Slice, old: str, new: str | None
    ) -> None:
        rendered: dict[Hashable, bytes] = {}
        for listener in audience:
            key = listener.channel.key
            if key not in rendered:
                rendered[key] = _with_ids(listener.channel.messages(part), old, new)
            listener.tell(rendered[key])

    async def _parts(self, old: str, new: str) -> AsyncIterator[Slice]:
        place: Place | None = BEGINNING
        while place is not None:
            after = place
            part = await self._database.read(lambda tx: tail.between(tx, old, new, after))  # noqa: B023
            yield part
            place = part.next
