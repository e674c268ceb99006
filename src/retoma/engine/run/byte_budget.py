"""A budget of bytes that many share: who wants more than is left waits for its turn."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ByteBudget:
    """At most so many bytes held at a time, first come, first served.

    What is larger than the whole budget is held alone.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def hold(self, size: int) -> AsyncIterator[None]:
        """Wait until so many bytes are left, and hold them inside the block."""
        await self._acquire(size)
        try:
            yield
        finally:
            self._held -= size
            self._wake()

    async def _acquire(self, size: int) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        self._wake()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # its turn came in the same moment
                self._held -= size
            self._wake()
            raise

    def _wake(self) -> None:
        while self._waiting:
            size, turn = self._waiting[0]
            if not turn.done():
                if self._held and self._held + size > self._most:
                    return
                self._held += size
                turn.set_result(None)
            self._waiting.popleft()
