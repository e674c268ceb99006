"""Read the body of a request, once somebody may send one there.

Nothing is read before the route has said who may come in: what a stranger sends stays in the socket. A
body that is JSON or a form is then read whole, within its bound and its time, and checked; a file that
is uploaded is handed on as it comes. What is large arrives on the disk, and is read once there is room.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message as MailMessage
from functools import partial
from hashlib import sha256
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Final, TypeVar

from starlette.types import Message, Receive, Scope

from retoma.engine.isolation.scratch import scratch
from retoma.web.body import Shape, read_json
from retoma.web.problems import Refusal
from retoma.web.room import Room
from retoma.words import say

T = TypeVar("T")

BODY: Final = "retoma.body"  # where a scope keeps it
FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
STRANGERS: Final = 64 * 1024  # bytes where nobody is asked who it is
RATE: Final = 64 * 1024  # bytes a second that a large body arrives with at least
LEAST: Final = 4 * 1024  # bytes a second that an uploaded file arrives with at least
ON_THE_LOOP: Final = 64 * 1024  # bytes that are read at once; more are read in a thread
READ: Final = b"{}"  # stands for a body that was read: its bytes are gone
LONGEST: Final = 200  # characters of a Content-Type; its parser is slow with more
FIRST_FIELD: Final = 1_024  # bytes in which the first field of a streamed form ends


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimit:
    """What may be sent to one path."""

    size: int  # bytes
    seconds: float  # for it to arrive; of a stream, for its next `least` bytes
    shape: Shape | None = None  # of JSON; None: it is handed on as it comes

    @property
    def least(self) -> int:
        """Bytes of a stream that its sender brings in `seconds` at least."""
        return int(LEAST * self.seconds)


class Gone(Exception):
    """The client has left; nobody is there to answer."""


class RequestBody:
    """The body of one request."""

    def __init__(
        self,
        receive: Receive,
        scope: Scope,
        headers: Mapping[str, str],
        limit: BodyLimit,
        room: Room,
    ) -> None:
        self._receive = receive
        self._room = room
        self._taken = 0  # of the room
        self._is_page = not scope["path"].startswith("/api/")
        self._headers = headers
        self._limit = limit
        self._size = 0
        self._held: list[Message] = []  # read already, for whoever asks next
        self._is_loaded = False
        self._is_whole = False  # the last piece of a stream has come
        self._left = limit.seconds  # to wait for the client, until `_due` bytes have come
        self._due = limit.least
        self.deadline: asyncio.Timeout | None = None  # of the answer: stands still meanwhile
        self._hash = sha256()
        self.is_json = False
        self.value: Any = None  # of JSON: what it says

    @property
    def is_streamed(self) -> bool:
        return self._limit.shape is None

    @property
    def digest(self) -> str:
        """By which the body is known when it comes again; of a stream nothing was read."""
        return "" if self.is_streamed else self._hash.hexdigest()

    async def load(self, most: int | None = None) -> None:
        """Read it whole and check it; of a stream nothing is read."""
        if self._is_loaded or self._limit.shape is None:
            return
        self._is_loaded = True
        left = None if self.deadline is None else self._stop_clock(self.deadline)
        most = min(self._limit.size, most or self._limit.size)
        raw = await self._read(most, self._limit.shape)
        self._held.append({"type": "http.request", "body": raw, "more_body": False})
        if self.deadline is not None and left is not None:
            self.deadline.reschedule(asyncio.get_running_loop().time() + left)

    def prolong(self, size: int) -> None:
        """An answer of so many bytes begins: it has as long to be taken as a body has to arrive."""
        if self.deadline is not None:
            now = asyncio.get_running_loop().time()
            self.deadline.reschedule(now + self._limit.seconds + size / RATE)

    def close(self) -> None:
        """It was answered: another body has the room."""
        taken, self._taken, self.value = self._taken, 0, None
        self._held.clear()
        if taken:
            self._room.give_back(taken)

    async def first_field(self) -> bytes:
        """The first field of a streamed form as it was sent; it is handed on all the same."""
        read = b""
        while b"&" not in read and len(read) < FIRST_FIELD:
            message = await self._next()
            self._held.append(message)
            read += message.get("body", b"")
            if not message.get("more_body", False):
                break
        return read[:FIRST_FIELD].partition(b"&")[0]

    async def receive(self) -> Message:
        """For the application."""
        if self._held:
            return self._held.pop(0)
        if self.is_streamed and not self._is_whole:
            return await self._next()
        return await self._receive()  # waits until the client leaves

    async def _read(self, most: int, shape: Shape) -> bytes:
        """What is handed on: the bytes, or of JSON that is large a word for them."""
        raw, file = await self._arrived(most)
        try:
            if file is None:
                if raw and self._takes_json():
                    self.is_json, self.value = True, read_json(raw, shape)
                return raw
            self._taken = await self._room.take(self._size)
            if not self._takes_json():
                return await self._room.read(_all_of, file)
            self.is_json = True
            self.value = await self._room.read(_json_in, file, shape)
            return READ
        finally:
            if file is not None:
                file.close()

    async def _arrived(self, most: int) -> tuple[bytes, BinaryIO | None]:
        """All of it, in memory where it is small, else in a file."""
        held = bytearray()
        file: BinaryIO | None = None
        try:
            async with asyncio.timeout(self._limit.seconds + most / RATE):
                more = True
                while more:
                    message = await self._received(most)
                    held += message.get("body", b"")
                    self._hash.update(message.get("body", b""))
                    more = message.get("more_body", False)
                    if len(held) > ON_THE_LOOP:
                        if file is None:
                            file = await _in_thread(_new_file)
                        await _in_thread(file.write, bytes(held))
                        held.clear()
                if file is not None:
                    await _in_thread(file.write, bytes(held))
        except BaseException as error:
            if file is not None:
                file.close()
            if isinstance(error, TimeoutError):
                raise _too_slow(self._limit.seconds) from None
            raise
        return (b"", file) if file is not None else (bytes(held), None)

    @staticmethod
    def _stop_clock(deadline: asyncio.Timeout) -> float | None:
        when = deadline.when()
        deadline.reschedule(None)
        return None if when is None else when - asyncio.get_running_loop().time()

    async def _next(self) -> Message:
        """Receive one piece of a stream; refuse a client that sends less than the least pace.

        Only the time spent waiting for the client counts, not the time the application takes for a piece.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._left):
                message = await self._received(self._limit.size)
        except TimeoutError:
            raise _too_little(self._limit) from None
        self._left -= loop.time() - began
        if self._size >= self._due:
            self._left, self._due = self._limit.seconds, self._size + self._limit.least
        return message

    async def _received(self, most: int) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Gone
        self._size += len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        if self._size > most:
            raise too_large(most)
        return message

    def _takes_json(self) -> bool:
        """False: it is a form, for a page."""
        given = self._headers.get("content-type") or "none/none"
        message = MailMessage()
        message["content-type"] = given if len(given) <= LONGEST else "none/none"
        media, charset = message.get_content_type(), message.get_param("charset", "utf-8")
        if media in FORMS and self._is_page:
            return False
        if media != "application/json" or str(charset).lower() not in ("utf-8", "utf8"):
            raise Refusal(
                "bad_media_type", say("a body here is application/json in UTF-8, and says so")
            )
        return True


def _new_file() -> BinaryIO:
    return TemporaryFile(dir=scratch())


def _all_of(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


def _json_in(file: BinaryIO, shape: Shape) -> Any:
    return read_json(_all_of(file), shape)


async def _in_thread(work: Callable[..., T], *args: object) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, partial(work, *args))


def too_large(most: int) -> Refusal:
    return Refusal("too_large", say("a body here has at most {most} bytes", most=most))


def _too_little(limit: BodyLimit) -> Refusal:
    return Refusal(
        "too_slow_request",
        say(
            "an upload brings at least {least} bytes in {seconds:g} s",
            least=limit.least,
            seconds=limit.seconds,
        ),
        headers={"Connection": "close"},
    )


def _too_slow(seconds: float) -> Refusal:
    return Refusal(
        "too_slow_request",
        say("the request did not arrive within {seconds:g} s", seconds=seconds),
        headers={"Connection": "close"},
    )
