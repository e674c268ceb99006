"""Small stories of a program over one database, each of them through other verbs of the engine.

A scenario asks again, as a program would, whatever failed; what it asks for has a key. So whatever happens to
one of its statements, all of it is done in the end, and once.
"""

import asyncio
import errno
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from retoma import (
    Context,
    Edge,
    IllegalMove,
    Limit,
    Park,
    Remote,
    Retoma,
    Retry,
    Skip,
    Snooze,
    State,
    Status,
    Transient,
)
from retoma.db import adhoc
from retoma.engine.ledger import Accepted, LedgerWriter
from retoma.engine.ports import Clock

T = TypeVar("T")

RETRY = Retry(attempts=3, base=0.005, cap=0.01)
KNOBS: dict[str, Any] = {"slots": 20, "tick": 0.15, "beat": 0.05, "grace": 2.0, "let_go": 1.0}
ASKED = 60  # times that a program asks again
PAUSE = 0.02
SELDOM = 10.0  # seconds between heartbeats: what a wake-up asks is asked before the next is due
LEAP = (
    20  # seconds of a second, for those who wait for a lease of 60: heartbeats go on meanwhile
)
TABLE = "CREATE TABLE IF NOT EXISTS goods (name text, n integer)"
COUNT = adhoc("SELECT name, count(*) FROM goods GROUP BY name")
PAID = {"provider": "shop", "model": "small", "usd": "0.25", "input_tokens": 7}


class LaterClock(Clock):
    """The time of this program and of its database, which may be set to later."""

    def __init__(self) -> None:
        super().__init__()
        self.later = 0

    def now(self) -> float:
        return super().now() + self.later

    def moved(self) -> int:
        return self.later * 1_000_000


async def patiently(write: Callable[[], T]) -> T:
    """What is no part of the engine is not to fail with it."""
    while True:
        try:
            return write()
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
        await asyncio.sleep(PAUSE)


@dataclass(slots=True)
class Play:
    """One run of a scenario: the program, what it wrote down outside, and what was refused."""

    url: str
    folder: Path
    clock: LaterClock = field(default_factory=LaterClock)
    app: Retoma = field(init=False)
    ledger: LedgerWriter = field(init=False)
    refused: list[str] = field(default_factory=list)
    crashes: int = 0  # runners that left with an error; their jobs are taken back
    goods: Counter[str] = field(default_factory=Counter)  # rows of the program's own table
    failures: int = 0  # that handlers raise on purpose
    left_open: int = 0  # jobs that are not to end
    jobs: int = 0
    knobs: dict[str, Any] = field(default_factory=dict)  # of its runners, besides KNOBS

    def __post_init__(self) -> None:
        self.app = Retoma(self.url, clock=self.clock)
        self.ledger = LedgerWriter(self.folder)

    async def ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is an answer."""
        for _ in range(ASKED):
            try:
                return await call()
            except (AssertionError, IllegalMove):
                raise
            except Exception as error:  # noqa: BLE001 — a program asks again, whatever it was
                self.refused.append(f"{type(error).__name__}: {error}")
                await asyncio.sleep(PAUSE)
        raise AssertionError(f"asked {ASKED} times, at last: {self.refused[-1]}")

    async def submit(self, kind: str, payload: Any = None, **how: Any) -> int:
        self.jobs += 1
        how.setdefault("key", f"{kind} {payload}")
        job = await self.ask(partial(self.app.submit, kind, payload, **how))
        answered = Accepted(job.id, payload, f"{kind} {how['key']}")
        await patiently(lambda: self.ledger.accepted(answered))
        return job.id

    async def run(self) -> None:
        """One runner after another until nothing waits."""
        for _ in range(ASKED):
            try:
                async with self._passing_time():
                    await self.app.run(until_idle=True, **{**KNOBS, **self.knobs})
            except Exception as error:  # noqa: BLE001 — a program asks again, whatever it was
                self.refused.append(f"run: {type(error).__name__}: {error}")
                self.crashes += 1
                self.clock.later += 61
                await asyncio.sleep(PAUSE)
            else:
                return
        raise AssertionError(f"{ASKED} runners left, the last with {self.refused[-1]}")

    @asynccontextmanager
    async def _passing_time(self) -> AsyncIterator[None]:
        """Once a runner has crashed, let its lease and the next one's first lease go by.

        A runner that could not write that it left is declared lost by one that has been in touch for
        a whole lease: two minutes in the world.
        """

        async def move() -> None:
            while True:
                await asyncio.sleep(1)
                self.clock.later += LEAP

        moving = asyncio.create_task(move()) if self.crashes else None
        try:
            yield
        finally:
            if moving is not None:
                moving.cancel()

    async def work(self, ctx: Context, name: str, value: Any = None) -> Any:
        """What a step does: it says so outside."""
        await self.tell(ctx, name, "start")
        await self.tell(ctx, name, "end", value or name)
        return value or name

    async def tell(self, ctx: Context, name: str, phase: str, value: Any = None) -> None:
        """Write it into the ledger, also where no file can be opened for a moment."""
        await patiently(lambda: self.ledger.effect(ctx, name, phase, value))

    def job(self, handler: Any, **how: Any) -> None:
        async def run(ctx: Context, payload: Any) -> Any:
            return await handler(self, ctx, payload)

        self.app.job(name=handler.__name__, retry=how.pop("retry", RETRY), **how)(run)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a program does, from an empty database at the schema of today."""

    name: str
    act: Callable[[Play], Awaitable[None]]
    migrated: bool = True


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


async def until_claimed(play: Play, job: int) -> None:
    while (await play.ask(lambda: play.app.get(job))).state is State.WAITING:  # noqa: ASYNC110 — a row
        await asyncio.sleep(0.01)


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


SCENARIOS = {
    each.name: each
    for each in (
        Scenario("work", work),
        Scenario("submits", submits),
        Scenario("transactions", transactions),
        Scenario("intents", intents),
        Scenario("shared", shared),
        Scenario("operates", operates),
        Scenario("recovers", recovers),
        Scenario("migrates", migrates, migrated=False),
    )
}


def expectations(
    play: Play, rows: dict[str, int], ends: Counter[Any], *, again: int
) -> Iterator[str]:
    """What a scenario says itself: its own rows once, its effects at most so many times again."""
    for name, n in play.goods.items():
        if rows.get(name, 0) != n:
            yield f"goods: {name} was written {rows.get(name, 0)} times, not {n}"
    for (job, step), n in ends.items():
        if n > 1 + again:
            yield f"effects: step {step} of job {job} was done {n} times"
