"""Check whether the database can be written to now."""

from contextlib import suppress

from retoma.db import Database, Full, Transaction
from retoma.db.database import no_room
from retoma.engine import store
from retoma.engine.ports import Ids

FILLER = 16 << 10  # bytes, that nothing makes smaller: more than what is left of any page
# Bytes on the disk of a file: what is written to it between two checkpoints.
LEAST_FREE = 16 << 20


async def can_write(database: Database, ids: Ids) -> None:
    """Return if something of some pages can be written now; else raise why not."""
    free = database.free_space()
    if free is not None and free < LEAST_FREE:
        raise Full(no_room(f"{free} bytes are free on its disk"))
    name, filler = f"probe {ids.new()}", ids.unguessable(FILLER)

    def grow(tx: Transaction) -> None:
        store.try_write(tx, name, filler)
        raise _Undone  # committed, its pages would be free for the next probe, and prove nothing

    with suppress(_Undone):
        await database.write(grow, verb="ready", patience=0)
    await database.write(lambda tx: store.try_write(tx, name, b""), verb="ready", patience=0)


class _Undone(Exception):
    """It could be written, and is not."""
