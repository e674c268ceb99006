"""What reach costs: a rate in force, a pool, remote work that is asked after, a runner with nothing to do."""

import asyncio
from collections import Counter
from typing import Any

from bench import ours
from bench.child import call
from bench.compare import Figures, Measure
from bench.ours import Address
from bench.places import Places
from bench.span import seconds_of

HERE = "bench.reach"
SHARED = "bench"  # the name of the pool and of the rate
THINGS = 100
FAR_ABOVE = 1e6  # calls a second: in force, and never reached
POLLS = 10  # of each piece of remote work, until it is done
MINUTE = 60.0
SETTLED = 10.0  # seconds: booted, duties taken, and the first pass of retention over


# --- In the parent


def drain(at: Address, kind: str, jobs: int, slots: int) -> Measure:
    """Jobs a second that each take a token (`rated`), or hold a thing of a hundred (`pooled`)."""

    def measure(places: Places) -> Figures:
        url = at(places)
        call(f"{HERE}:fill", url=url, kind=kind, jobs=jobs)
        call(f"{HERE}:work", url=url, slots=slots)
        return (jobs / seconds_of(url, jobs),)

    return measure


def polls(at: Address, jobs: int, slots: int) -> Measure:
    """Polls a second of remote work; each is a claim, a question and a snooze."""

    def measure(places: Places) -> Figures:
        url = at(places)
        call(f"{HERE}:fill", url=url, kind="polled", jobs=jobs)
        call(f"{HERE}:work", url=url, slots=slots)
        return (jobs * POLLS / seconds_of(url, jobs),)

    return measure


def idle(at: Address, watched: float) -> Measure:
    """Statements a minute of a runner that has nothing to do."""

    def measure(places: Places) -> Figures:
        asked = call(f"{HERE}:watch_idle", url=at(places), watched=watched)
        return (asked / watched * MINUTE,)

    return measure


# --- In a child


def fill(url: str, kind: str, jobs: int) -> None:
    ours.run(fill_queue(url, kind, jobs))


async def fill_queue(url: str, kind: str, jobs: int) -> None:
    async with make_app(url) as app:
        await app.upgrade()
        await app.pools.declare(SHARED, {f"thing {n}": n for n in range(THINGS)})
        await app.rates.set(SHARED, FAR_ABOVE)
        await app.submit_many(kind, [{"number": n} for n in range(jobs)], name="bench")


def work(url: str, slots: int) -> None:
    ours.run(work_until_idle(url, slots))


async def work_until_idle(url: str, slots: int) -> None:
    async with make_app(url) as app:
        await app.run(slots=slots, until_idle=True)


def watch_idle(url: str, watched: float) -> int:
    return ours.run(watch(url, watched))


async def watch(url: str, watched: float) -> int:
    from bench.statements import listed

    with listed() as sent:
        async with make_app(url) as app:
            await app.upgrade()
            running = asyncio.create_task(app.run())
            await asyncio.sleep(SETTLED)
            before = len(sent)
            await asyncio.sleep(watched)
            found = len(sent) - before
            app.stop()
            await running
    return found


def make_app(url: str) -> Any:
    from retoma import Context, Edge, Remote, Retoma, Status

    app = Retoma(url)
    asked: Counter[str] = Counter()

    async def send(key: str, _payload: Any) -> str:
        return key

    async def ask(handle: str) -> Status:
        asked[handle] += 1
        return Status("done" if asked[handle] >= POLLS else "going")

    edges = {"going": Edge.GOING, "done": Edge.DONE}
    elsewhere = Remote(send=send, ask=ask, statuses=edges, interval=0.01)

    async def rated(ctx: Context, _payload: Any) -> None:
        await ctx.rate(SHARED)

    async def pooled(ctx: Context, _payload: Any) -> None:
        async with ctx.use(SHARED):
            pass

    async def polled(ctx: Context, _payload: Any) -> None:
        await ctx.remote("work", elsewhere)

    for story in (rated, pooled, polled):
        app.job(name=story.__name__)(story)
    return app
