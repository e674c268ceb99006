"""Small stories of a program over one database, each of them through other verbs of the engine.

A scenario asks again, as a program would, whatever failed; what it asks for has a key. So whatever happens to
one of its statements, all of it is done in the end, and once.
"""

import asyncio
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from retoma import (
    Context,
    Edge,
    IllegalMove,
    Limit,
    Park,
    Remote,
    Retry,
    Skip,
    Snooze,
    State,
    Status,
    Transient,
)
from tests.prove.play import (
    KNOBS,
    PAID,
    SELDOM,
    TABLE,
    Play,
    Scenario,
    patiently,
    until_claimed,
)

# — handlers —


async def chain(play: Play, ctx: Context, n: int) -> Any:
    """Steps, a failure, progress, a durable loop, evidence."""
    await ctx.step("first", play.work, ctx, "first")
    await ctx.progress(0.5, "half")
    if ctx.attempt == 1 and n == 0:
        raise Transient("not this time")
    await ctx.attach("page.html", f"<p>{n}</p>")

    async def one(each: str) -> Any:
        return await play.work(ctx, f"each/{each}")

    return await ctx.each("each", "ab", one, key=str)


async def nap(play: Play, ctx: Context, n: int) -> Any:
    done = ctx.kept("slept")
    await ctx.step("slept", play.work, ctx, "slept")
    return n if done else Snooze(0.01)


async def skip(play: Play, ctx: Context, n: int) -> Any:
    return Skip("not needed")


async def child(play: Play, ctx: Context, name: str) -> Any:
    return await ctx.step("child", play.work, ctx, "child")


async def writes(play: Play, ctx: Context, name: str) -> Any:
    """A step in the database itself, with a row of our own and a child."""

    def put(tx: Any) -> int:
        tx.run("INSERT INTO goods (name, n) VALUES (:name, 1)", name=name)
        return int(tx.submit("child", f"of {name}").id)  # without a key: twice would be two

    return await ctx.write("put", put)


async def shares(play: Play, ctx: Context, name: str) -> Any:
    """One transaction for all that write now."""

    def put(tx: Any, names: Any) -> list[str]:
        for each in names:
            tx.run("INSERT INTO goods (name, n) VALUES (:name, 1)", name=each)
        return list(names)

    return await ctx.share(put, name)


async def once(play: Play, ctx: Context, n: int) -> Any:
    return await ctx.step("once", play.work, ctx, "once", once=True, unknown="repeat")


async def borrows(play: Play, ctx: Context, n: int) -> Any:
    """Pool items, a rate, a breaker, and money."""
    async with ctx.use("things"):
        await ctx.step("borrowed", play.work, ctx, "borrowed")
    await ctx.rate("site")
    async with ctx.breaker("shop"):
        pass
    held = await ctx.use("things", scope="job")
    await ctx.step("paid", pay, play, ctx)
    await held.release()
    return n


async def pay(play: Play, ctx: Context) -> str:
    await play.tell(ctx, "paid", "start")
    ctx.cost(provider="shop", model="small", usd="0.25", input_tokens=7)
    await play.tell(ctx, "paid", "charge", PAID)
    await play.tell(ctx, "paid", "end", "receipt")
    return "receipt"


async def parks(play: Play, ctx: Context, n: int) -> Any:
    seen = ctx.kept("seen")
    await ctx.step("seen", play.work, ctx, "seen")
    return n if seen else Park("a person must look")


async def stays(play: Play, ctx: Context, n: int) -> Any:
    """Until somebody cancels it."""
    await ctx.step("begun", play.work, ctx, "begun")
    for k in range(2_000):
        await asyncio.sleep(0.005)
        await ctx.progress(k / 2_000)


async def dies(play: Play, ctx: Context, n: int) -> Any:
    raise Transient("never")


class Machine:
    """Somebody else's, with a log that outlives the program."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "machine.log"
        self._log.touch()

    def works(self) -> dict[str, str]:
        works: dict[str, str] = {}
        for line in self._log.read_text().splitlines():
            key, status = line.split(" ")
            assert status != "running" or key not in works, f"{key} was sent twice"
            works[key] = status
        return works

    def remote(self, *, ends: bool) -> Remote:
        async def send(key: str, payload: Any) -> str:
            await patiently(lambda: self._tell(key, "running"))
            return key

        async def ask(handle: str) -> Status:
            if ends and (await patiently(self.works))[handle] == "running":
                await patiently(lambda: self._tell(handle, "completed"))
            return Status((await patiently(self.works))[handle], value="fetched")

        async def find(key: str) -> str | None:
            return key if key in await patiently(self.works) else None

        async def stop(handle: str) -> None:
            if (await patiently(self.works))[handle] == "running":
                await patiently(lambda: self._tell(handle, "canceled"))

        statuses = {"running": Edge.GOING, "completed": Edge.DONE, "canceled": Edge.STOPPED}
        return Remote(
            send=send,
            ask=ask,
            find=find,
            stop=stop,
            statuses=statuses,
            interval=0.01,
            absent_after=0,
        )

    def _tell(self, key: str, status: str) -> None:
        with self._log.open("a") as log:
            log.write(f"{key} {status}\n")


async def remotely(play: Play, ctx: Context, ends: bool) -> Any:
    machine = await patiently(lambda: Machine(play.folder))
    return await ctx.remote("fetch", machine.remote(ends=ends))


# — scenarios —


async def work(play: Play) -> None:
    """Claims, steps, a failure, snoozes, ends; heartbeats beside them."""
    for handler in (chain, nap, skip):
        play.job(handler, limit=Limit(2) if handler is chain else None)
    play.failures = 1
    for kind, payload in (("chain", 0), ("chain", 1), ("chain", 2), ("nap", 0), ("skip", 0)):
        await play.submit(kind, payload)
    await play.run()


async def submits(play: Play) -> None:
    """One, many, later, in a transaction of our own, under keys that were used before."""
    play.job(child)
    play.job(skip)
    await play.ask(lambda: play.app.write(lambda tx: tx.run(TABLE)))
    await play.submit("child", "single")
    await play.submit("child", "later", delay=0.01)
    for _ in range(2):
        batch = await play.ask(
            lambda: play.app.submit_many("child", ["a", "b", "c"], key="many", name="many")
        )
    play.jobs += 3

    def written(tx: Any) -> int:
        row = tx.one("SELECT n FROM goods WHERE name = 'written'")
        if row is None:
            tx.run("INSERT INTO goods (name, n) VALUES ('written', 1)")
            tx.submit("child", "written")
        return 0

    await play.ask(lambda: play.app.write(written))
    play.goods["written"] = 1
    play.jobs += 1
    await play.run()
    await play.ask(batch.wait)


async def transactions(play: Play) -> None:
    """Steps that are transactions, alone and shared, with children of their own."""
    for handler in (writes, shares, child):
        play.job(handler)
    await play.ask(lambda: play.app.write(lambda tx: tx.run(TABLE)))
    for name in ("lamp", "rope"):
        await play.submit("writes", name)
        play.jobs += 1
        play.goods[name] += 1
    for name in ("vase", "bell"):
        await play.submit("shares", name)
        play.goods[name] += 1
    await play.run()


async def intents(play: Play) -> None:
    """Steps declared once, and work on another machine, one of it stopped by a cancel."""
    play.job(once)
    play.job(remotely)
    await play.submit("once", 1)
    await play.submit("remotely", payload=True)
    endless = await play.submit("remotely", payload=False)
    machine = Machine(play.folder)

    async def canceled() -> None:
        while len(await patiently(machine.works)) < 2:  # noqa: ASYNC110 — it is a file
            await asyncio.sleep(0.01)
        with suppress(IllegalMove):
            await play.ask(lambda: play.app.cancel(endless))

    await asyncio.gather(play.run(), canceled())
    assert Counter(machine.works().values()) == {"completed": 1, "canceled": 1}, machine.works()


async def shared(play: Play) -> None:
    """What jobs share: pool items, a rate, a breaker, money."""
    play.job(borrows)
    await play.ask(lambda: play.app.pools.declare("things", {"a": 1, "b": 2}))
    await play.ask(lambda: play.app.rates.set("site", 1_000, burst=100))
    await play.ask(lambda: play.app.breakers.declare("shop"))
    for n in range(3):
        await play.submit("borrows", n)
    await play.run()


async def operates(play: Play) -> None:
    """A person cancels, resumes, retries, skips and pauses, one job and whole batches."""
    for handler in (parks, stays, dies, child):
        play.job(handler, retry=Retry(attempts=1))
    parked = await play.submit("parks", 1)
    waiting = await play.submit("child", "never", delay=3600)
    held = await play.submit("stays", 1)
    batch = await play.ask(lambda: play.app.submit_many("dies", [1, 2], key="dies"))
    late = await play.ask(
        lambda: play.app.submit_many("child", ["x", "y"], key="late", delay=3600)
    )
    play.jobs += 4
    play.failures = 4
    with suppress(IllegalMove):
        await play.ask(lambda: play.app.cancel(waiting))
    await play.ask(late.pause)
    await play.ask(late.unpause)
    await play.ask(late.cancel)

    async def steered() -> None:
        await until_claimed(play, held)
        with suppress(IllegalMove):
            await play.ask(lambda: play.app.cancel(held))

    await asyncio.gather(play.run(), steered())
    with suppress(IllegalMove):
        await play.ask(lambda: play.app.resume(parked))
    await play.ask(batch.retry_failed)
    await play.run()
    await play.ask(lambda: batch.skip("enough", codes="transient"))


async def recovers(play: Play) -> None:
    """A runner is lost with what it holds; another takes it back."""
    play.job(chain)
    play.job(child)
    await play.submit("chain", 1)
    await play.submit("child", "left")
    stuck = asyncio.Event()

    async def never(play: Play, ctx: Context, n: int) -> Any:
        await ctx.step("stuck", play.work, ctx, "stuck")
        stuck.set()
        if not play.crashes:
            await asyncio.Event().wait()

    play.job(never)
    held = await play.submit("never", 1)
    running = asyncio.create_task(play.app.run(**KNOBS))
    waiting = asyncio.create_task(until_stuck(play, held, stuck))
    await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
    for each in (running, waiting):
        each.cancel()
    await asyncio.gather(running, waiting, return_exceptions=True)
    play.crashes += 1
    play.clock.later += 61
    await play.run()


async def until_stuck(play: Play, job: int, stuck: asyncio.Event) -> None:
    """Return also where it never comes to that, because the database refuses its step."""
    while not stuck.is_set():
        if (await play.ask(lambda: play.app.get(job))).state not in (
            State.WAITING,
            State.RUNNING,
        ):
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(stuck.wait(), 0.1)


async def migrates(play: Play) -> None:
    """An empty database gets its schema, and works; its runner beats as seldom as in the world."""
    play.job(child)
    play.knobs["beat"] = SELDOM
    await play.ask(play.app.upgrade)
    await play.submit("child", "first")
    await play.run()


STORIES = (
    Scenario("work", work),
    Scenario("submits", submits),
    Scenario("transactions", transactions),
    Scenario("intents", intents),
    Scenario("shared", shared),
    Scenario("operates", operates),
    Scenario("recovers", recovers),
    Scenario("migrates", migrates, migrated=False),
)
