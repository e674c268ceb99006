"""How many bytes of requests are worked on at a time.

A body becomes several times its size once it is read. Who finds no room waits for its turn; what has arrived
by then lies on the disk.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeVar

from retoma.web.problems import LATER, Refusal
from retoma.words import say

T = TypeVar("T")

SIZE: Final = 16 * 1024 * 1024  # bytes of bodies; read, they are 150 MiB at most
READERS: Final = 2  # threads that read one: more would only keep the loop from its turn
PATIENCE: Final = 30.0  # seconds to wait for room


class Room:
    """First come, first served."""

    def __init__(self, size: int = SIZE, patience: float = PATIENCE) -> None:
        self._size = size
        self._patience = patience
        self._left = size
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._reading = asyncio.Semaphore(READERS)

    @asynccontextmanager
    async def hold(self, size: int) -> AsyncIterator[None]:
        """Room for so many bytes until the block ends."""
        taken = await self.take(size)
        try:
            yield
        finally:
            self.give_back(taken)

    async def take(self, size: int) -> int:
        """Wait for room; return how much of it to give back. What is larger than all of it waits for all."""
        wanted = min(size, self._size)
        if self._waiting or wanted > self._left:
            await self._wait(wanted)
        else:
            self._left -= wanted
        return wanted

    def give_back(self, taken: int) -> None:
        self._left += taken
        self._admit()

    async def read(self, work: Callable[..., T], *args: object) -> T:
        """Read something large in a thread; few do so at a time."""
        async with self._reading:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(None, partial(work, *args))

    async def _wait(self, wanted: int) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((wanted, turn))
        try:
            async with asyncio.timeout(self._patience):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self.give_back(wanted)  # our turn came as we left
            self._waiting = deque(each for each in self._waiting if each[1] is not turn)
            self._admit()
            if isinstance(error, TimeoutError):
                raise _full() from None
            raise

    def _admit(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._left:
            wanted, turn = self._waiting.popleft()
            if not turn.done():
                self._left -= wanted
                turn.set_result(None)


def _full() -> Refusal:
    return Refusal(
        "too_many_requests",
        say("more large bodies came than there is memory for; come back a little later"),
        headers={"Retry-After": str(LATER)},
    )
