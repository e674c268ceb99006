"""Texts of many jobs in one call; each job is told of its own alone, and pays its share.

While calls are on their way, whatever else is asked for gathers, and goes out together with the next: no
clock decides, and a lone text waits for nobody. Nothing is kept here: a job that ends takes its texts out.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import Context, copy_context
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Final

from retoma.apps.embeddings.providers import Embedded, ItemRefused, Provider, Used
from retoma.engine.rules.outcome import Unwound

AT_ONCE: Final = 2  # calls on their way


@dataclass(frozen=True, slots=True)
class Share:
    """What came of the texts of one job, and what part of the call it was."""

    items: Sequence[bytes | ItemRefused]
    model: str
    input_tokens: int
    usd: Decimal | None


@dataclass(slots=True, eq=False)
class _Request:
    texts: Sequence[str]
    answer: "asyncio.Future[Share]"
    ready: Callable[[], Awaitable[None]]
    rate: Callable[[], AbstractAsyncContextManager[None]] | None
    context: Context


class Batcher:
    """One for each process and provider."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._waiting: deque[_Request] = deque()
        self._calls: set[asyncio.Task[None]] = set()

    async def embed(
        self,
        texts: Sequence[str],
        ready: Callable[[], Awaitable[None]],
        rate: Callable[[], AbstractAsyncContextManager[None]] | None = None,
    ) -> Share:
        """`ready` returns when a call may begin for this job, and is canceled when it never may again: who
        has slept through his lease asks for nothing. `rate` is entered once for a call, by whoever is
        first in it: for a rate that calls keep to.
        """
        loop = asyncio.get_running_loop()
        request = _Request(texts, loop.create_future(), ready, rate, copy_context())
        self._waiting.append(request)
        if len(self._calls) < AT_ONCE:
            loop.call_soon(self._send)  # whoever asks in this same turn of the loop goes along
        return await request.answer

    def _send(self) -> None:
        while self._waiting and len(self._calls) < AT_ONCE:
            together = self._next()
            if not together:
                return
            task = asyncio.get_running_loop().create_task(
                self._call(together), context=together[0].context
            )
            self._calls.add(task)
            task.add_done_callback(self._over)
            for request in together:
                request.answer.add_done_callback(partial(_stop, task, together))

    def _next(self) -> list[_Request]:
        """As many whole requests as one call has room for; those that nobody waits for are left out."""
        together: list[_Request] = []
        room = self._provider.most
        while self._waiting:
            if self._waiting[0].answer.done():
                self._waiting.popleft()
                continue
            if together and len(self._waiting[0].texts) > room:
                break
            together.append(self._waiting.popleft())
            room -= len(together[-1].texts)
        return together

    def _over(self, task: "asyncio.Task[None]") -> None:
        self._calls.discard(task)
        self._send()

    async def _call(self, asked: Sequence[_Request]) -> None:
        together = [request for request in asked if await _is_ready(request)]
        if not together:
            return
        texts = [text for request in together for text in request.texts]
        try:
            rate = together[0].rate
            async with nullcontext() if rate is None else rate():
                embedded = await self._provider.embed(texts)
        except (Exception, Unwound) as error:  # noqa: BLE001 — it is for each of the jobs to judge
            for request in together:
                if not request.answer.done():
                    request.answer.set_exception(error)
            return
        for request, share in zip(together, _shares(embedded, together), strict=True):
            if not request.answer.done():
                request.answer.set_result(share)


async def _is_ready(request: _Request) -> bool:
    try:
        await request.ready()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        request.answer.cancel()
    return not request.answer.done()


def _stop(task: "asyncio.Task[None]", together: Sequence[_Request], _: object) -> None:
    """A call that nobody waits for any more is broken off."""
    if all(request.answer.cancelled() for request in together):
        task.cancel()


def _shares(embedded: Embedded, together: Sequence[_Request]) -> list[Share]:
    """By how long the texts are; what all of them pay together is what the call cost."""
    used, shares, begun = embedded.used, [], 0
    weights = [sum(map(len, request.texts)) or 1 for request in together]
    done, tokens, whole = 0, 0, sum(weights)
    for request, weight in zip(together, weights, strict=True):
        items = embedded.items[begun : begun + len(request.texts)]
        begun += len(request.texts)
        done += weight
        mine = used.input_tokens * done // whole - tokens
        tokens += mine
        shares.append(Share(items, used.model, mine, _money(used, weight, whole)))
    return shares


def _money(used: Used, weight: int, whole: int) -> Decimal | None:
    return None if used.usd is None else Decimal(str(used.usd)) * weight / whole
