"""Keep uploads on the disk while they arrive, so that none is ever whole in memory."""

import asyncio
import base64
import binascii
import re
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from tempfile import TemporaryFile
from typing import BinaryIO, Final, TypeVar
from urllib.parse import unquote_to_bytes

from retoma.engine.isolation.scratch import scratch
from retoma.web.problems import Refusal
from retoma.words import say

T = TypeVar("T")

PIECE: Final = 64 * 1024  # bytes that are written at a time
MOST_FIELDS: Final = 20  # of a form beside its file
LONGEST: Final = 4_096  # bytes of the name or the value of one, as it was sent
LONGEST_HEAD: Final = 200  # bytes of a data URL before its bytes
DATA_URL: Final = re.compile(rb"data:[^,]{0,150};base64,")


@asynccontextmanager
async def spooled(body: AsyncIterable[bytes]) -> AsyncIterator[BinaryIO]:
    """Write a body to a temporary file, and hand the file on at its start."""
    with await _opened() as file:
        async for piece in _gathered(body):
            await in_thread(file.write, piece)
        await in_thread(file.seek, 0)
        yield file


@asynccontextmanager
async def spooled_form(
    body: AsyncIterable[bytes], name: str
) -> AsyncIterator[tuple[BinaryIO, Mapping[str, str]]]:
    """Write the field `name` of a URL-encoded form to a temporary file; hand it on with the other fields.

    A field that is a data URL stands for its bytes: so a page sends a file that is no text.
    """
    with await _opened() as file:
        form = _Form(name, file)
        try:
            async for piece in _gathered(body):
                await in_thread(form.feed, piece)
            form.end()
        except ValueError:
            raise Refusal(
                "bad_request", say("the form cannot be read; load the page again")
            ) from None
        plain = await in_thread(_without_base64, file)
        try:
            yield plain, form.fields
        finally:
            plain.close()


async def in_thread(work: Callable[..., T], *args: object) -> T:
    """Call `work` in a thread: a disk may be slow, and a table long."""
    return await asyncio.get_running_loop().run_in_executor(None, partial(work, *args))


async def _opened() -> BinaryIO:
    return await in_thread(_temporary)


def _temporary() -> BinaryIO:
    return TemporaryFile(dir=scratch())


def _without_base64(file: BinaryIO) -> BinaryIO:
    """The file at its start; of a data URL its bytes, in a file of their own."""
    file.seek(0)
    head = DATA_URL.match(file.read(LONGEST_HEAD))
    file.seek(head.end() if head else 0)
    if head is None:
        return file
    made = _temporary()
    try:
        while piece := file.read(PIECE):  # a multiple of four
            made.write(base64.b64decode(piece, validate=True))
    except binascii.Error:
        made.close()
        raise Refusal(
            "bad_request", say("the form cannot be read; load the page again")
        ) from None
    made.seek(0)
    return made


async def _gathered(body: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Larger pieces than the network brings, none empty."""
    held = bytearray()
    async for piece in body:
        held += piece
        if len(held) >= PIECE:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


class _Form:
    """A URL-encoded form that arrives in pieces. Raises ValueError where it is none."""

    def __init__(self, wanted: str, file: BinaryIO) -> None:
        self.fields: dict[str, str] = {}
        self._wanted = wanted.encode()
        self._file = file
        self._names = set[bytes]()
        self._name: bytes | None = None  # of the field that is arriving
        self._held = b""  # of its name, its value, or an escape that is not whole yet

    def feed(self, piece: bytes) -> None:
        if len(self._names) + piece.count(b"&") > MOST_FIELDS:
            raise ValueError("too many fields")
        first, *others = piece.split(b"&")
        self._add(first)
        for each in others:
            self.end()
            self._add(each)

    def end(self) -> None:
        """The field that was arriving is whole."""
        name, held = self._name, _unescaped(self._held)
        if name is None:
            if held or self._names:
                raise ValueError("a field without a value")
        elif name == self._wanted:
            self._file.write(held)
        else:
            # What is longer than any value is cut: whoever takes the value refuses it.
            self.fields[name.decode()] = held.decode("utf-8", "replace").replace("\0", "")
        self._name, self._held = None, b""

    def _add(self, raw: bytes) -> None:
        held = self._held + raw
        if self._name is None:
            name, equals, held = held.partition(b"=")
            if not equals:
                held = name
            else:
                self._name = self._begun(name)
        if self._name == self._wanted:
            cut = held.rfind(b"%", max(len(held) - 2, 0))
            whole = len(held) if cut < 0 else cut
            self._file.write(_unescaped(held[:whole]))
            held = held[whole:]
        elif self._name is None and len(held) > LONGEST:
            raise ValueError("a long name")
        self._held = held[: LONGEST + 1]

    def _begun(self, raw: bytes) -> bytes:
        name = _unescaped(raw[:LONGEST])
        if name in self._names:
            raise ValueError("a field twice")
        self._names.add(name)
        return name


def _unescaped(raw: bytes) -> bytes:
    return unquote_to_bytes(raw.replace(b"+", b" "))
