"""What the engine asks seldom: after an answer was lost, for the reason that a page gives, of a rate that it
finds by trying, and for spans that go on elsewhere.

Each scenario is as those of `scenarios`: whatever it asks for is asked again, and done once.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from retoma import Context, IllegalMove, Limit, NotFound, Retoma, Retry, State
from retoma.db import crashpoint
from retoma.db.crashpoint import Harm
from retoma.engine.rules.errors import Throttled
from retoma.engine.store import hints
from retoma.engine.traces import Side
from tests.prove.play import TABLE, Play, Scenario, until_claimed
from tests.prove.scenarios import child, stays, writes

# Commits of a runner whose answers get lost, each the first time.
LOST = ("save", "settle", "effect", "take", "free")
PRICED = {"provider": "shop", "usd": "0.25", "calls": 1}
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
LOOKS = 100  # at most, until a job stands where it is to stand
PAUSE = 0.02


async def unsure(play: Play) -> None:
    """Answers to commits are lost: what was written is found, and not written again."""

    async def borrows_once(play: Play, ctx: Context, n: int) -> Any:
        async with ctx.use("only"):
            return await ctx.step("borrowed", play.work, ctx, "borrowed")

    for handler in (child, writes, borrows_once):
        play.job(handler)
    await play.ask(lambda: play.app.write(lambda tx: tx.run(TABLE)))
    await play.ask(lambda: play.app.pools.declare("only", {"a": 1}))
    with losing_answers():
        await play.submit("child", "saved")
        await play.run()
        await play.submit("writes", "lamp")
        play.jobs += 1
        play.goods["lamp"] = 1
        await play.submit("borrows_once", 1)
        await play.run()


@contextmanager
def losing_answers() -> Iterator[None]:
    """Inside, the first answer to each of these commits is lost."""
    for verb in LOST:
        crashpoint.arm(f"{verb}.after_commit", Harm.REPLY_LOST)
    try:
        yield
    finally:
        crashpoint.disarm()


async def reasons(play: Play) -> None:
    """A person asks why jobs wait, and how those run that hold them up."""

    async def holds(play: Play, ctx: Context, n: int) -> Any:
        async with ctx.use("only"):
            if n == 0:
                await stays(play, ctx, n)
        return n

    async def narrow(play: Play, ctx: Context, n: int) -> Any:
        if n == 0:
            await stays(play, ctx, n)
        return n

    once = Retry(attempts=1)
    play.job(holds, retry=once)
    play.job(narrow, limit=Limit(1), retry=once)
    play.job(stays, retry=once)
    play.job(child)
    await play.ask(lambda: play.app.pools.declare("only", {"a": 1}))
    play.knobs |= {"slots": 3}
    held = [await play.submit("holds", 0), await play.submit("narrow", 0)]

    async def asked() -> None:
        for each in held:
            await until_claimed(play, each)
        outside = [await play.submit("holds", 1), await play.submit("narrow", 1)]
        for each in outside:
            await until_explained(play, each, "set aside")
        held.append(await play.submit("stays", 1))
        await until_claimed(play, held[-1])
        waits = await play.submit("child", "in line")
        await until_explained(play, waits, "waiting its turn")
        await play.ask(partial(play.app.explain, held[0]))
        await play.ask(partial(play.app.jobs, state=State.RUNNING))
        for each in held:
            with suppress(IllegalMove):
                await play.ask(partial(play.app.cancel, each))

    await asyncio.gather(play.run(), asked())
    await play.run()
    await play.ask(partial(play.app.jobs, state=State.CANCELED))
    for runner in await play.ask(play.app.runners.list):
        with suppress(IllegalMove, NotFound):
            await play.ask(partial(play.app.runners.drain, runner.boot))


async def until_explained(play: Play, job: int, reason: str) -> None:
    """Until this is why it waits; whoever holds it up may have ended, because the database refused its step."""
    for _ in range(LOOKS):
        if reason in await play.ask(partial(play.app.explain, job)):
            return
        await asyncio.sleep(PAUSE)


async def learns(play: Play) -> None:
    """A rate that nobody has set is found: a service refuses a call, and takes the next."""

    async def calls(play: Play, ctx: Context, n: int) -> Any:
        async with ctx.rate("found", adaptive=True):
            if ctx.attempt == 1:
                raise Throttled("slow down", retry_after=0.01)
        return n

    play.job(calls)
    await play.submit("calls", 1)
    play.failures += 1
    await play.run()
    await play.ask(play.app.rates.list)


async def prices(play: Play) -> None:
    """What a call costs is on the price list."""

    async def buys_listed(play: Play, ctx: Context, n: int) -> Any:
        return await ctx.step("listed", listed, play, ctx)

    async def listed(play: Play, ctx: Context) -> str:
        await play.tell(ctx, "listed", "start")
        ctx.cost(provider="shop", calls=1)
        await play.tell(ctx, "listed", "charge", PRICED)
        await play.tell(ctx, "listed", "end", "receipt")
        return "receipt"

    play.job(buys_listed)
    await play.ask(lambda: play.app.prices.set("shop", "calls", "0.25"))
    await play.submit("buys_listed", 1)
    await play.run()


class Spans:
    """Spans that are kept nowhere."""

    traceparent = PARENT

    def span(
        self,
        name: str,
        side: Side = Side.INTERNAL,
        *,
        parent: str | None = None,
        **facts: Any,
    ) -> Any:
        return self

    def here(self) -> str | None:
        return PARENT

    def flush(self) -> None: ...
    def tell(self, **facts: Any) -> None: ...
    def fail(self, code: str) -> None: ...
    def __enter__(self) -> "Spans":
        return self

    def __exit__(self, *_: object) -> None: ...


async def traces(play: Play) -> None:
    """Jobs that were submitted under a span run below it; a batch is hinted to another process."""
    play.app = Retoma(play.url, clock=play.clock, traces=Spans())
    play.job(child)
    batch = await play.ask(
        lambda: play.app.submit_many("child", ["a", "b"], key="traced", traceparent=PARENT)
    )
    play.jobs += 2
    database = await play.ask(play.app.database)
    await play.ask(lambda: database.read(partial(hints.ready_in_batch, batch=batch.id, most=9)))
    await play.run()


QUESTIONS = (
    Scenario("unsure", unsure),
    Scenario("reasons", reasons),
    Scenario("learns", learns),
    Scenario("prices", prices),
    Scenario("traces", traces),
)
