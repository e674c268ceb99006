"""Health: whether the database answers and takes writes."""

from retoma.db import DatabaseError
from retoma.library import Retoma


async def find_trouble(app: Retoma) -> str | None:
    """What is wrong with the database, in one word; None: it answers and takes writes."""
    try:
        await app.ready()
    except DatabaseError as error:
        return type(error).__name__.lower()
    return None
