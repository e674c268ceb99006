"""The scenario on which the engine itself is tried: jobs of every shape, submitters, an operator.

Handlers record in the ledger what they really did; the doubles of other people's services keep logs of their
own. `Scenario.verify` compares both with what the engine promises beyond what the checker knows.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any

from retoma import (
    BadInput,
    Context,
    Edge,
    Happened,
    IllegalMove,
    NotFound,
    Park,
    Permanent,
    Remote,
    Retoma,
    Retry,
    Skip,
    Snooze,
    Status,
    Transient,
    Unsure,
)
from retoma.db import DatabaseError
from retoma.engine.checker.effect_ledger import CHARGE, END, START, Accepted, Effect
from retoma.simulation.simulate import Scenario, SimulatedLedger
from retoma.simulation.universe import START as BEGINNING
from retoma.simulation.universe import Universe

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
JOBS = 10  # submitted in a universe, children and batches not counted
CAP = 2  # capped jobs at once
ENDS_WITHIN = (
    600.0  # virtual seconds after the last fault; the longest of 40,000 universes took 141
)
QUICK_RETRY = Retry(attempts=4, base=0.5, cap=5.0)
PATIENT = Retry(attempts=200, base=0.5, cap=5.0)
KINDS = (
    *("chain", "fan", "costly", "moody", "writer", "mission", "paid", "site", "fast"),
    *("borrow", "rated", "native"),
)
VERBS = (
    *("cancel", "cancel", "retry", "retry", "skip", "resume", "take back"),
    *("pause", "drain", "batch", "explain"),
)
STATUSES = {
    "running": Edge.GOING,
    "completed": Edge.DONE,
    "failed": Edge.FAILED,
    "unknown": Edge.GONE,
    "canceled": Edge.STOPPED,
}


@dataclass
class Service:
    """Somebody else's service, which survives every host: it hangs up, forgets and answers late."""

    rng: Random
    works: dict[str, str] = field(default_factory=dict)  # its id → status
    keys: dict[str, str] = field(default_factory=dict)  # its id → our key
    most_live: Counter[str] = field(default_factory=Counter)  # by key
    payments: Counter[str] = field(default_factory=Counter)  # by key
    numbers: Any = field(default_factory=count)

    async def answer_late(self) -> None:
        await asyncio.sleep(self.rng.expovariate(1 / 0.5))

    async def send(self, key: str, _: Any) -> str:
        await self.answer_late()
        if self.rng.random() < 0.1:
            raise Transient("503")
        handle = f"w{next(self.numbers)}"
        self.works[handle], self.keys[handle] = "running", key
        live = sum(
            self.keys[each] == key and status == "running"
            for each, status in self.works.items()
        )
        self.most_live[key] = max(self.most_live[key], live)
        if self.rng.random() < 0.15:
            raise ConnectionError("it hung up after accepting")
        await self.answer_late()
        return handle

    async def ask(self, handle: str) -> Status:
        await self.answer_late()
        if self.works[handle] == "running" and self.rng.random() < 0.4:
            self.works[handle] = "completed" if self.rng.random() < 0.8 else "failed"
        return Status(self.works[handle], value=handle, key=self.keys[handle])

    async def find(self, key: str) -> str | None:
        await self.answer_late()
        found = [handle for handle, known in self.keys.items() if known == key]
        return found[-1] if found else None

    async def stop(self, handle: str) -> None:
        await self.answer_late()
        if self.works[handle] == "running":
            self.works[handle] = "canceled"

    async def pay(self, key: str) -> str:
        """A payment that happens at once and is answered late, or not at all."""
        self.payments[key] += 1
        await self.answer_late()
        if self.rng.random() < 0.1:
            raise ConnectionError("it hung up after paying")
        return key

    async def find_payment(self, key: str) -> Happened | None:
        await self.answer_late()
        return Happened(key) if self.payments[key] else None

    def remote(self) -> Remote:
        return Remote(
            send=self.send,
            ask=self.ask,
            find=self.find,
            stop=self.stop,
            statuses=STATUSES,
            interval=3.0,
            absent_after=6.0,
        )


class World:
    """One universe's handlers, and what they have at hand."""

    def __init__(self) -> None:
        self.ledger = SimulatedLedger()
        self.capped: Counter[str] = Counter()
        self.most_capped = 0
        self.holders: dict[str, tuple[int, int]] = {}
        self.problems: list[str] = []
        self.written: Counter[str] = Counter()
        self._chances: dict[str, Random] = {}

    def enter(self, universe: Universe) -> None:
        self.universe = universe
        self.service = Service(self.chance_of("service"))

    def chance_of(self, name: str) -> Random:
        """Of one actor: what another does must not change what this one draws."""
        if name not in self._chances:
            self._chances[name] = Random(f"{self.universe.seed}/{name}")
        return self._chances[name]

    # — what handlers do —

    def record(self, ctx: Context, step: str, phase: str, value: Any = None) -> None:
        loop = self.universe.loop
        at = EPOCH + timedelta(seconds=BEGINNING + loop.time())
        pid = loop.current_thread().host.pid
        self.ledger.effects.append(
            Effect(ctx.job, ctx.generation, ctx.epoch, step, pid, phase, at, value)
        )

    async def take_time(self, ctx: Context) -> None:
        """Mostly seconds; now and then longer than a lease."""
        rng = self.chance_of(f"job{ctx.job}")
        if rng.random() < 0.3:
            await asyncio.sleep(0)
        else:
            await asyncio.sleep(rng.expovariate(1 / (10 if rng.random() < 0.3 else 1)))

    async def step(self, ctx: Context, name: str, value: Any, *, key: str = "") -> Any:
        called = f"{name}/{key}" if key else name

        async def work() -> Any:
            self.record(ctx, called, START)
            await self.take_time(ctx)
            if self.chance_of(f"job{ctx.job}").random() < 0.05:
                raise Transient("it failed")
            self.record(ctx, called, END, value)
            return value

        return await ctx.step(name, work, key=key)

    async def chain(self, ctx: Context, n: int) -> int:
        for number in range(n % 4):
            await self.step(ctx, f"link{number}", number)
        return n

    async def fan(self, ctx: Context, n: int) -> list[int]:
        async def one(item: int) -> int:
            called = f"item/{item}"
            self.record(ctx, called, START)
            await self.take_time(ctx)
            self.record(ctx, called, END, item)
            return item

        return await ctx.each("item", range(n % 6), one, concurrency=3)

    async def paid(self, ctx: Context, n: int) -> str:
        key = f"{ctx.job}/{ctx.generation}"
        return await ctx.step(
            "pay",
            self.service.pay,
            f"{key}/{n}",
            once=True,
            reconcile=self.service.find_payment,
        )

    async def costly(self, ctx: Context, n: int) -> int:
        async def buy() -> int:
            self.record(ctx, "buy", START)
            ctx.cost(provider="sim", usd="0.01")
            charge = {"provider": "sim", "usd": "0.01"}
            self.record(ctx, "buy", CHARGE, charge)
            await self.take_time(ctx)
            self.record(ctx, "buy", END, n)
            return n

        return await ctx.step("buy", buy)

    async def mission(self, ctx: Context, n: int) -> Any:
        await self.step(ctx, "before", n)
        return await ctx.remote("scrape", self.service.remote(), {"n": n})

    async def writer(self, ctx: Context, n: int) -> int:
        def write(tx: Any) -> int:
            return int(tx.submit("chain", n).id)

        child = await ctx.write("child", write)
        self.written[f"{ctx.job}/{ctx.generation}"] = max(child, 0)
        return child

    async def site(self, ctx: Context, n: int) -> int:
        self.capped["site"] += 1
        self.most_capped = max(self.most_capped, self.capped["site"])
        try:
            await self.step(ctx, "visit", n)
        finally:
            self.capped["site"] -= 1
        return n

    async def moody(self, ctx: Context, n: int) -> Any:
        await self.step(ctx, "look", n)
        rng = self.chance_of(f"job{ctx.job}")
        mood = rng.random()
        if mood < 0.3:
            return Snooze(rng.random() * 15)
        if mood < 0.4:
            return Skip("nothing to do")
        if mood < 0.5:
            return Park("a person must look")
        if mood < 0.7:
            raise Transient("again", code="ERROR502")
        if mood < 0.8:
            raise Permanent("never")
        await self.step(ctx, "act", n)
        return n

    async def borrow(self, ctx: Context, n: int) -> int:
        async with ctx.use("proxies"):
            await self.step(ctx, "borrowed", n)
        return n

    async def rated(self, ctx: Context, n: int) -> int:
        await ctx.rate("calls")
        return int(await self.step(ctx, "call", n))

    async def native(self, ctx: Context, n: int) -> int:
        """Work for a child process, which may die of it."""
        halves = await ctx.step("halve", halve, n)
        return int(await self.step(ctx, "join", sum(halves)))

    def build(self) -> Retoma:
        app = Retoma("sqlite:///simulated.db", timezone="UTC")
        for handler in (self.chain, self.fan, self.costly, self.moody, self.writer):
            app.job(name=handler.__name__, retry=QUICK_RETRY)(_plain(handler))
        for handler in (self.mission, self.paid, self.borrow, self.rated, self.native):
            app.job(name=handler.__name__, retry=PATIENT)(_plain(handler))
        app.job(name="site", retry=QUICK_RETRY, limit=CAP)(_plain(self.site))
        app.job(name="fast", retry=QUICK_RETRY, timeout=8.0)(_plain(self.chain))
        return app

    # — who else is there —

    async def submit(self, app: Retoma) -> None:
        rng = self.chance_of("submitter")
        await patiently(lambda: app.pools.declare("proxies", {"a": 1, "b": 2}))
        await patiently(lambda: app.rates.set("calls", 2.0))
        for number in range(JOBS):
            await asyncio.sleep(rng.expovariate(1 / 2.5))
            kind = rng.choice(KINDS)
            key = f"{kind}-{number}" if rng.random() < 0.7 else None
            await self._submit(app, kind, number, key)
        with suppress(DatabaseError, Unsure):
            await app.submit_many("chain", range(4), key="batch")

    async def _submit(self, app: Retoma, kind: str, number: int, key: str | None) -> None:
        while True:
            try:
                job = await app.submit(kind, number, key=key)
            except (Unsure, DatabaseError):
                if key is None:
                    return  # nobody can tell
                await asyncio.sleep(1.0)
            else:
                self.ledger.accepted.append(Accepted(job.id, number, key))
                return

    async def act(self, app: Retoma) -> None:
        """An operator who clicks at random while things go wrong, and tidies up afterwards."""
        universe, rng = self.universe, self.chance_of("operator")
        every, until = universe.planned.act_every, universe.planned.span
        while every:
            await asyncio.sleep(rng.expovariate(1 / every))
            if universe.loop.time() >= until:
                break
            with suppress(DatabaseError, IllegalMove, NotFound, Unsure, BadInput):
                await self._act_once(app)
        await self._resume(app)

    async def _act_once(self, app: Retoma) -> None:
        rng = self.chance_of("operator")
        jobs = await app.jobs(limit=50)
        verb, chosen, seconds = rng.choice(VERBS), rng.random(), rng.random() * 8
        if not jobs or not self.universe.chances.happens("operator", "act"):
            return
        job = jobs[int(chosen * len(jobs))]
        self.universe.note(f"{verb}, job {job.id}")
        match verb:
            case "cancel":
                await app.cancel(job.id)
            case "retry":
                await app.retry(job.id, fresh=seconds < 2)
            case "skip":
                await app.skip(job.id, "nobody wants it")
            case "resume":
                await app.resume(job.id)
            case "take back":
                await app.runners.take_back()
            case "pause":
                await app.pauses.pause("kind", "chain")
                await asyncio.sleep(seconds)
                await self._resume(app)
            case "drain":
                runners = [each for each in await app.runners.list() if each.state == "alive"]
                if runners:
                    await app.runners.drain(runners[int(chosen * len(runners))].boot)
            case "batch":
                await self._act_on_batch(app, seconds)
            case _:
                await app.explain(job.id)

    async def _act_on_batch(self, app: Retoma, seconds: float) -> None:
        batches = await app.batches.list()
        if not batches:
            return
        batch = batches[0]
        if seconds < 2:
            await batch.cancel()
        elif seconds < 4:
            await batch.retry_failed()
        elif seconds < 6:
            await batch.again(fresh=seconds < 5)
        else:
            with suppress(DatabaseError):  # it may be paused all the same
                await batch.pause()
            await asyncio.sleep(seconds)
            await patiently(batch.unpause)

    async def _resume(self, app: Retoma) -> None:
        # Where nobody has run that kind, nobody could pause it.
        with suppress(NotFound):
            await patiently(lambda: app.pauses.resume("kind", "chain"))

    def verify(self) -> Sequence[str]:
        found = list(self.problems)
        found += [
            f"remote work {key} was live {n} times at once"
            for key, n in self.service.most_live.items()
            if n > 1
        ]
        found += [
            f"payment {key} was made {n} times"
            for key, n in self.service.payments.items()
            if n > 1
        ]
        return found


def scenario() -> Scenario:
    world = World()
    return Scenario(
        app=world.build(),
        submit=world.submit,
        act=world.act,
        verify=world.verify,
        ledger=world.ledger,
        enter=world.enter,
        ends_within=ENDS_WITHIN,
    )


async def patiently(ask: Callable[[], Awaitable[Any]]) -> None:
    """Ask until it is answered, as somebody does who has to."""
    while True:
        try:
            await ask()
        except (DatabaseError, Unsure):
            await asyncio.sleep(1.0)
        else:
            return


def halve(n: int) -> list[int]:
    """In a child process."""
    return [n // 2, n - n // 2]


def _plain(handler: Any) -> Any:
    async def run(ctx: Context, payload: Any) -> Any:
        return await handler(ctx, payload)

    return run
