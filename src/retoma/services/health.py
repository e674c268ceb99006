"""Health: whether the database answers and takes writes, and what time it is there."""

from datetime import datetime

from retoma.db import DatabaseError
from retoma.engine import store
from retoma.library import Retoma


async def find_trouble(app: Retoma) -> str | None:
    """What is wrong with the database, in one word; None: it answers and takes writes."""
    try:
        await app.ready()
    except DatabaseError as error:
        return type(error).__name__.lower()
    return None


async def read_clock(app: Retoma) -> datetime:
    """The time by the clock of the database."""
    return await (await app.database()).read(store.now)
