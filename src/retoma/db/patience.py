"""Asking again while the database is away or busy and nothing was changed."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from retoma.db.database import Away, Busy, ReplyLost

T = TypeVar("T")

PATIENCE = 30.0  # seconds: a restart of PostgreSQL takes less than one
FIRST_PAUSE = 0.02
LONGEST_PAUSE = 1.0


async def patiently(ask: Callable[[], Awaitable[T]], patience: float) -> T:
    """Call `ask` until it answers, or until `patience` seconds have passed by the loop's clock."""
    clock = asyncio.get_running_loop().time
    until = clock() + patience
    pause = FIRST_PAUSE
    while True:
        try:
            return await ask()
        except ReplyLost:
            raise
        except (Away, Busy):
            if clock() + pause > until:
                raise
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
