"""Keeps what stories attach: squeezed beside the loop, in the database or on a shelf.

On a shelf the order is intent, bytes, row: the row by which a job shows its evidence is written when
the bytes are there, and bytes without such a row are found by their intent. A shelf that cannot be
reached harms nobody: the bytes go into the database.
"""

import asyncio
import hashlib
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Protocol, TypeVar

from retoma.db import Database, Transaction
from retoma.engine import store
from retoma.engine.log import get_logger
from retoma.engine.ports import Ids
from retoma.engine.rules.errors import NotFound, RetomaError
from retoma.engine.rules.job import Held
from retoma.engine.store import Evidence, Intent, Packed
from retoma.words import say

T = TypeVar("T")

SMALL = 64 * 1024  # bytes that are squeezed in less time than a thread takes to begin
TRIES = 3  # against a retention that takes an intent for forgotten; one is enough in a day

log = get_logger("retoma.evidence")


class ShelfAway(RetomaError):
    """The shelf that evidence lies on cannot be reached, or refuses us."""


class Shelf(Protocol):
    """Where bytes may lie outside the database. Times are the database's, for signatures."""

    base: str  # with which all its places begin; no secret in it

    async def put(self, place: str, data: bytes, at: datetime) -> None: ...
    async def get(self, place: str, at: datetime) -> bytes | None: ...
    async def remove(self, place: str, at: datetime) -> None:
        """Gone already is gone too."""

    async def close(self) -> None: ...


class Writes(Protocol):
    """A database, or one under a duty."""

    async def write(self, fn: Callable[[Transaction], T], *, verb: str) -> T: ...
    async def read(self, fn: Callable[[Transaction], T]) -> T: ...


class Keeper:
    """Where evidence goes, and where it is found again."""

    def __init__(self, shelf: Shelf | None = None, ids: Ids | None = None) -> None:
        self._shelf = shelf
        self._ids = ids or Ids()

    async def attach(
        self, database: Database, boot: str, held: Held, evidence: Evidence
    ) -> bool:
        """Keep it with its job; whether this runner may still write on that."""
        packed = await _packed(evidence)
        while True:
            try:
                return await self._attach(database, boot, held, packed)
            except store.NoRoom as full:
                packed = await _packed(evidence, full.room)

    async def get(self, database: Database, sha256: str) -> bytes:
        """The bytes, as they were attached (or as much of them as was kept)."""
        kept = await database.read(lambda tx: store.get_evidence(tx, sha256))
        if kept is None:
            raise NotFound(say("there is no evidence {sha256}", sha256=sha256))
        data = kept.data
        if data is None and kept.place is not None:
            data = await self._fetched(kept.place, kept.at)
        if data is None:
            raise NotFound(
                say(
                    "evidence {sha256}: its bytes are no longer at {place}",
                    sha256=sha256,
                    place=kept.place,
                )
            )
        content = await _beside(data, partial(store.unpack, kept, data))
        if hashlib.sha256(content).hexdigest() != sha256:
            raise NotFound(
                say(
                    "evidence {sha256}: what lies at {place} is something else",
                    sha256=sha256,
                    place=kept.place,
                )
            )
        return content

    async def collect(self, database: Writes) -> int:
        """Delete what no job shows and empty the places it leaves; how many were deleted."""
        dropped = await drop_unreferenced(database)
        if self._shelf is not None:
            await _empty(database, self._shelf)
        return dropped

    async def close(self) -> None:
        if self._shelf is not None:
            await self._shelf.close()

    async def _attach(self, database: Database, boot: str, held: Held, packed: Packed) -> bool:
        if self._shelf is not None and not packed.left_out:
            for _ in range(TRIES):
                try:
                    return await self._on_shelf(database, self._shelf, boot, held, packed)
                except store.IntentGone:
                    continue
                except ShelfAway as error:
                    log.warning("evidence.shelf_away", job=held.job, error=str(error))
                    break
        return await database.write(
            lambda tx: store.attach(tx, boot, held, packed), verb="attach"
        )

    async def _on_shelf(
        self, database: Database, shelf: Shelf, boot: str, held: Held, packed: Packed
    ) -> bool:
        # Never the same place twice: what is emptied can then not be what was just put there.
        place = f"{shelf.base}{packed.sha256[:2]}/{packed.sha256}.{self._ids.new()[:12]}"
        intent: Intent | None = await database.write(
            lambda tx: store.intend(tx, boot, held, packed, place), verb="intend"
        )
        if intent is None:
            return False
        there = intent.place
        if there is not None and not intent.there:
            self._check_mine(there)
            await shelf.put(there, packed.data, intent.at)
        return await database.write(
            lambda tx: store.attach_stored(tx, boot, held, packed, there), verb="attach"
        )

    def _check_mine(self, place: str) -> None:
        """Somebody with another shelf may have had the same bytes in mind."""
        if self._shelf is None or not place.startswith(self._shelf.base):
            raise ShelfAway(f"{place} is not on the shelf of this process")

    async def _fetched(self, place: str, at: datetime) -> bytes | None:
        self._check_mine(place)
        return None if self._shelf is None else await self._shelf.get(place, at)


async def drop_unreferenced(database: Writes) -> int:
    """Delete the evidence that no job shows, a page at a time; how many that was."""
    dropped, after = 0, ""
    while True:
        n, last = await database.write(
            partial(store.drop_unreferenced, after=after), verb="drop_evidence"
        )
        if last is None:
            return dropped
        dropped, after = dropped + n, last


async def _empty(database: Writes, shelf: Shelf) -> None:
    while left := await database.read(lambda tx: store.places_left(tx, shelf.base)):
        for place, at in left:
            try:
                await shelf.remove(place, at)
            except ShelfAway as error:
                log.warning("evidence.shelf_away", place=place, error=str(error))
                return  # the next pass finds them again
            await database.write(
                partial(store.place_emptied, place=place), verb="place_emptied"
            )


async def _packed(evidence: Evidence, room: int = store.PIECE) -> Packed:
    return await _beside(evidence.content, partial(store.pack, evidence, room))


async def _beside(data: bytes, work: Callable[[], T]) -> T:
    """In a thread where it would hold up the loop."""
    if len(data) <= SMALL:
        return work()
    return await asyncio.get_running_loop().run_in_executor(None, work)
