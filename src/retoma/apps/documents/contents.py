"""Where the bytes of documents lie: in the database, so that a runner on any machine can read them.

They come and go piece by piece; nobody holds a whole file who does not read it.
"""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import mkstemp
from typing import BinaryIO, Final, TypeVar

from retoma.apps.documents.store import contents as store
from retoma.engine.isolation.isolate import CHILDREN
from retoma.engine.isolation.scratch import scratch
from retoma.engine.rules.errors import NotFound
from retoma.engine.run.transaction import Transaction
from retoma.engine.writing.coalescer import Together
from retoma.library import Retoma
from retoma.words import say

T = TypeVar("T")

PIECE: Final = 1 << 20  # bytes
AT_ONCE: Final = 4  # pieces of one transaction
SMALL: Final = 1 << 16  # bytes: a thread takes longer to begin than such a piece to be written
AT_HAND: Final = 2 * CHILDREN  # files on the disk: what a child reads, and what it reads next
# And of a piece each: a file stays until what was read of it is kept, and no child may rest meanwhile.
SMALL_AT_HAND: Final = 8 * CHILDREN


class Contents:
    """The bytes of documents, by their SHA-256."""

    def __init__(self, retoma: Retoma) -> None:
        self._retoma = retoma
        self._begun = Together(self._all_begun, most=AT_ONCE)
        self._room = asyncio.Semaphore(AT_HAND)
        self._room_for_small = asyncio.Semaphore(SMALL_AT_HAND)

    async def keep(self, file: Path, sha256: str, size: int) -> None:
        """Keep what is in this file. After it all is there; what was there is not sent again."""
        if size <= PIECE:
            await self._retoma.write(partial(_keep_small, sha256, size, file))
            return
        if await self._retoma.write(lambda tx: store.begin(tx, sha256, size)):
            return
        for n in range(0, -(-size // PIECE), AT_ONCE):
            await self._retoma.write(partial(_keep, sha256, n, file))
        if not await self._retoma.write(lambda tx: store.end(tx, sha256)):
            raise _gone(sha256)

    async def open(self, sha256: str) -> bytes:
        """All of it; NotFound where it is no longer there."""
        return b"".join([piece async for piece in self.pieces(sha256)])

    @asynccontextmanager
    async def on_disk(self, sha256: str, size: int) -> AsyncIterator[Path]:
        """A file with it, once there is room, for as long as this lasts: for a child that reads it."""
        async with self._room_for_small if size <= PIECE else self._room:
            path = _new_file()
            try:
                await self._fill(path, sha256)
                yield path
            finally:
                _forget(path)

    async def drop_unneeded(self) -> int:
        """Drop what no document names and nobody has sent for a day; how many that was."""
        dropped = 0
        while n := await self._retoma.write(store.drop_unneeded):
            dropped += n
        return dropped

    async def _fill(self, path: Path, sha256: str) -> None:
        async for piece in self.pieces(sha256):
            if len(piece) > SMALL:
                await _beside(_append, path, piece)
            else:
                _append(path, piece)

    async def pieces(self, sha256: str) -> AsyncIterator[bytes]:
        """All of it, piece by piece; NotFound where it is not there, or not what it was."""
        database = await self._retoma.database()
        size, piece = await self._begun.asked(sha256)
        if size is None:
            raise _gone(sha256)
        digest, n = hashlib.sha256(), 1
        while size > 0:
            if piece is None:
                raise _gone(sha256)
            digest.update(piece)
            size -= len(piece)
            yield piece
            if size > 0:
                piece = await database.read(partial(store.piece_of, sha256=sha256, n=n))
                n += 1
        if digest.hexdigest() != sha256:
            raise _gone(sha256)

    async def _all_begun(
        self, wanted: Sequence[str]
    ) -> Sequence[tuple[int | None, bytes | None]]:
        database = await self._retoma.database()
        return await database.read(partial(store.begun, wanted=wanted))


# Each reads its file once it has its turn to write: however many files wait, few are in memory.


def _keep_small(sha256: str, size: int, file: Path, tx: Transaction) -> None:
    if not store.begin(tx, sha256, size):
        store.keep(tx, sha256, 0, _read_pieces(file, 0, 1))
        store.end(tx, sha256)


def _keep(sha256: str, first: int, file: Path, tx: Transaction) -> None:
    store.keep(tx, sha256, first, _read_pieces(file, first, AT_ONCE))


def _read_pieces(file: Path, first: int, count: int) -> list[bytes]:
    with file.open("rb") as opened:
        opened.seek(first * PIECE)
        return [piece for _ in range(count) if (piece := _piece(opened))]


def _piece(file: BinaryIO) -> bytes:
    return file.read(PIECE)


def _new_file() -> Path:
    """An empty one that nobody else may read. Made and unmade at once: nobody stops us in between."""
    handle, name = mkstemp(prefix="paper-", dir=scratch())
    os.close(handle)
    return Path(name)


def _append(path: Path, piece: bytes) -> None:
    with path.open("ab") as file:
        file.write(piece)


def _forget(path: Path) -> None:
    path.unlink(missing_ok=True)


def _gone(sha256: str) -> NotFound:
    return NotFound(say("the content {sha256} is not there, or no longer", sha256=sha256))


async def _beside(work: Callable[..., T], *args: object) -> T:
    """In a thread: a disk may be slow."""
    return await asyncio.get_running_loop().run_in_executor(None, partial(work, *args))
