"""Stories that crash, hang, eat, hold the loop or do not let go, and neighbours that do nothing wrong."""

import asyncio
import re
import threading
from contextlib import suppress
from typing import Any

from retoma import Context, Retoma, Retry
from retoma.engine.checker.effect_ledger import LedgerWriter
from tests.engine.calls import crash, double, eat, hang

FOR_EVER = 3600.0  # seconds: longer than any of these tests


RETRY = Retry(attempts=2, base=0.05, cap=1.0)  # each attempt of a bad one costs a new child


def register(app: Retoma, ledger: LedgerWriter) -> None:
    stories = HangStories(ledger)
    for story in (
        *(stories.crashes, stories.eats, stories.hangs, stories.fine),
        *(stories.holds, stories.bombs, stories.clings, stories.waits, stories.leaks),
    ):
        app.job(name=story.__name__, retry=RETRY)(_plain(story))


def _plain(story: Any) -> Any:
    async def run(ctx: Context, payload: Any) -> Any:
        return await story(ctx, payload)

    return run


class HangStories:
    """What they all need: where to tell."""

    def __init__(self, ledger: LedgerWriter) -> None:
        self._ledger = ledger

    async def crashes(self, ctx: Context, n: int) -> None:
        await ctx.step("crash", crash, n)

    async def eats(self, ctx: Context, n: int) -> None:
        await ctx.step("eat", eat, 2_000, memory="200MB")

    async def hangs(self, ctx: Context, n: int) -> None:
        await ctx.step("hang", hang, n, timeout="500ms")

    async def fine(self, ctx: Context, n: int) -> int:
        return await ctx.step("double", double, n)

    # — the first claim holds the loop, the next lets go —

    async def holds(self, ctx: Context, n: int) -> None:
        self._tell(ctx)
        if ctx.epoch == 1:
            threading.Event().wait(FOR_EVER)

    async def bombs(self, ctx: Context, n: int) -> None:
        self._tell(ctx)
        if ctx.epoch == 1:
            re.match(r"(a+)+$", "a" * 40 + "b")

    # — the first claim does not let go —

    async def clings(self, ctx: Context, n: int) -> None:
        self._tell(ctx)
        while ctx.epoch == 1:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(FOR_EVER)

    async def waits(self, ctx: Context, n: int) -> None:
        self._tell(ctx)
        if ctx.epoch == 1:
            await asyncio.sleep(FOR_EVER)

    async def leaks(self, ctx: Context, n: int) -> None:
        self._tell(ctx)
        if ctx.epoch == 1:
            beside = asyncio.ensure_future(ctx.step("beside", lambda: hang(1), where="thread"))
            await asyncio.gather(beside, asyncio.to_thread(hang, 1))

    def _tell(self, ctx: Context) -> None:
        self._ledger.effect(ctx, "work", "waits")
