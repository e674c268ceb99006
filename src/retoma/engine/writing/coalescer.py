"""What several ask at the same time is asked as one question, as soon as the last one was answered.

As in the group writer no timer decides: who asks alone waits for nobody, a hundred at once share one
transaction. Whoever asks is answered by a question that began after he asked.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

A = TypeVar("A")
R = TypeVar("R")

MOST = 100  # in one question


class Together(Generic[A, R]):
    """`ask` answers for each of what it is given, in that order; an exception among its answers is
    raised for that one alone."""

    def __init__(
        self,
        ask: Callable[[Sequence[A]], Awaitable[Sequence[R | Exception]]],
        most: int = MOST,
        size: Callable[[A], int] = lambda _: 1,
    ) -> None:
        self._ask = ask
        self._most = most
        self._size = size
        self._waiting: list[tuple[A, asyncio.Future[R]]] = []
        self._busy: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        return self._busy is None

    async def asked(self, about: A) -> R:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[R] = loop.create_future()
        self._waiting.append((about, answer))
        if self._busy is None:
            self._busy = loop.create_task(self._until_empty())
        return await answer

    async def _until_empty(self) -> None:
        try:
            while self._waiting:
                await self._answered(self._next_group())
        finally:
            self._busy = None

    def _next_group(self) -> "list[tuple[A, asyncio.Future[R]]]":
        """As many from the front as one question has room for, and one however large."""
        room, n = self._most, 0
        for about, _ in self._waiting:
            room -= self._size(about)
            if n and room < 0:
                break
            n += 1
        group, self._waiting = self._waiting[:n], self._waiting[n:]
        return group

    async def _answered(self, group: "list[tuple[A, asyncio.Future[R]]]") -> None:
        """Everybody in the group gets an answer, whatever happens."""
        try:
            answers = await self._ask([about for about, _ in group])
        except Exception as error:  # noqa: BLE001 — told to those who asked
            answers = [error] * len(group)
        except BaseException:
            for _, answer in group:
                answer.cancel()
            raise
        for (_, answer), told in zip(group, answers, strict=True):
            if answer.done():
                continue  # nobody waits for it any more
            if isinstance(told, Exception):
                answer.set_exception(told)
            else:
                answer.set_result(told)
