"""A tiny world in one process that passes every crash point; told again, it finishes what is left.

`python -m tests.chaos.crash_world URL FOLDER`. Everything it asks for is asked for under a key, so
it may die anywhere and be started again. The names of the points it passes go to a file.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from retoma import (
    Context,
    Edge,
    IllegalMove,
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
from retoma.db import crashpoint
from retoma.engine import store
from retoma.engine.checker.effect_ledger import Accepted, LedgerWriter
from retoma.engine.ops.watchdog import Watchdog
from retoma.engine.ports import Process
from retoma.engine.rules.errors import LeaseLost
from retoma.engine.rules.states import ENDED
from retoma.engine.store import runners

RETRY = Retry(attempts=6, base=0.01, cap=0.05)
KNOBS: dict[str, Any] = {"slots": 30, "tick": 0.2, "beat": 0.05, "grace": 0.1}
PATIENCE = 300.0  # seconds; a quiet machine needs one
TAKEN_AT_ONCE = 2  # so that a few jobs of a dead runner are more than one bite
STATUSES = {"running": Edge.GOING, "completed": Edge.DONE, "canceled": Edge.STOPPED}
LOOK = 0.1  # seconds until one of a pair looks whether the other has ended long ago


class Stories:
    """What the jobs of this world do, each effect told to the ledger."""

    def __init__(
        self,
        ledger: LedgerWriter,
        machine: "Machine",
        has_ended: Callable[[str], Awaitable[bool]],
    ) -> None:
        """`has_ended`: whether the job of this key has."""
        self._ledger = ledger
        self._has_ended = has_ended
        self._machine = machine
        self._came = 0
        self._both_came = asyncio.Event()
        self._zombies: dict[int, Context] = {}

    async def chain(self, ctx: Context, n: int) -> list[str]:
        """Steps, a failure, progress, evidence, a durable loop."""
        first = await ctx.step("first", self._work, ctx, "first")
        await ctx.progress(0.3, "one of three")
        if ctx.attempt == 1 and n == 0:
            raise Transient("not this time")
        await ctx.attach("page.html", f"<p>{n}</p>")
        loop = await ctx.each("each", "abc", partial(self._work, ctx, "each"), key=str)
        return [first, *loop]

    async def meet(self, ctx: Context, saving: bool) -> Any:
        """Of a pair one saves at the moment at which the other ends."""
        if saving:
            return await ctx.step("meet", self._met, ctx)
        await self._other_came("meet True")
        return "met"

    async def nap(self, ctx: Context) -> Any:
        return Snooze(0.02) if ctx.epoch == 1 else "rested"

    async def skip(self, ctx: Context) -> Any:
        return Skip("not needed")

    async def park(self, ctx: Context) -> Any:
        return Park("a person must look") if ctx.epoch == 1 else "looked"

    async def zombie(self, ctx: Context) -> str:
        """The second attempt finds the first one's context still alive, and lets it write."""
        if ctx.attempt == 1:
            self._zombies[ctx.job] = ctx
            raise Transient("half dead")
        if ctx.job in self._zombies:
            with suppress(LeaseLost):
                await self._zombies[ctx.job].progress(0.9, "late")
        return "alive"

    async def held(self, ctx: Context) -> str:
        """Stays until somebody stops it, the first time; at last it is the only one that writes."""
        while ctx.epoch == 1:
            await ctx.progress(0.5, "still here")
            await asyncio.sleep(0.05)
        return "let go"

    async def borrow(self, ctx: Context) -> str:
        """Holds a thing that came with the claim, and one it asks for."""
        async with ctx.use("claimed"):
            thing = await ctx.use("asked", scope="job")
            value = await ctx.step("borrow", self._work, ctx, "borrow")
        await thing.release()
        await ctx.step("given back", self._work, ctx, "given back")
        return value

    async def once(self, ctx: Context) -> str:
        """What is about to happen is committed first."""
        return await ctx.step("once", self._work, ctx, "once", once=True, unknown="repeat")

    async def elsewhere(self, ctx: Context) -> Any:
        """Two pieces of work on another machine, at once."""
        names = ("left", "right")
        return await asyncio.gather(
            *(ctx.remote(name, self._remote(ctx, name)) for name in names)
        )

    async def endless(self, ctx: Context) -> Any:
        """Work on another machine that goes on until somebody stops it."""
        return await ctx.remote("endless", self._remote(ctx, "endless"))

    def _remote(self, ctx: Context, name: str) -> Remote:
        async def ask(handle: str) -> Status:
            status = self._machine.ask(handle, ends=name != "endless")
            value = f"{name} of job {ctx.job}"
            if status == "completed":
                self._ledger.effect(ctx, name, "end", value)
            return Status(status, value=value)

        return Remote(
            send=self._machine.send,
            ask=ask,
            find=self._machine.find,
            stop=self._machine.stop,
            statuses=STATUSES,
            interval=0.02,
            absent_after=0,
        )

    async def never(self, ctx: Context) -> None:
        raise AssertionError("it was canceled before it was due")

    async def _work(self, ctx: Context, name: str, item: str = "") -> str:
        name = f"{name}/{item}" if item else name
        self._ledger.effect(ctx, name, "start")
        await asyncio.sleep(0.01)
        value = f"{name} of job {ctx.job} by epoch {ctx.epoch}"
        self._ledger.effect(ctx, name, "end", value)
        return value

    async def _met(self, ctx: Context) -> str:
        self._ledger.effect(ctx, "meet", "start")
        await self._other_came("meet False")
        value = f"met by epoch {ctx.epoch}"
        self._ledger.effect(ctx, "meet", "end", value)
        return value

    async def _other_came(self, other: str) -> None:
        self._came += 1
        if self._came == 2:
            # Both wake in one turn of the loop, so what they write goes out in one group.
            asyncio.get_running_loop().call_soon(self._both_came.set)
        while not (self._both_came.is_set() or await self._has_ended(other)):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._both_came.wait(), LOOK)


class Machine:
    """Somebody else's, with a log of its own that outlives us: a line for each beginning and end."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "machine.log"
        self._log.touch()

    def works(self) -> dict[str, str]:
        """The status of each, by its key; a key that was accepted twice is told."""
        works: dict[str, str] = {}
        for key, status in (line.split(" ") for line in self._log.read_text().splitlines()):
            if status == "running" and key in works:
                raise AssertionError(f"{key} was sent twice")
            works[key] = status
        return works

    async def send(self, key: str, payload: Any) -> str:
        self._tell(key, "running")
        return key

    def ask(self, handle: str, *, ends: bool) -> str:
        if ends and self.works()[handle] == "running":
            self._tell(handle, "completed")
        return self.works()[handle]

    async def find(self, key: str) -> str | None:
        return key if key in self.works() else None

    async def stop(self, handle: str) -> None:
        if self.works()[handle] == "running":
            self._tell(handle, "canceled")

    def _tell(self, key: str, status: str) -> None:
        with self._log.open("a") as log:
            log.write(f"{key} {status}\n")


class CrashWorld:
    """The jobs, and a person who steers them."""

    def __init__(self, url: str, folder: Path) -> None:
        self.app = Retoma(url)
        self._ledger = LedgerWriter(folder)
        self._ids: dict[str, int] = {}
        self._running: asyncio.Task[None] | None = None
        self._machine = Machine(folder)
        stories = Stories(self._ledger, self._machine, self._has_ended)
        self.app.job(name="chain", retry=RETRY, limit=2)(_plain(stories.chain))
        self.app.job(name="borrow", retry=RETRY, holds="claimed")(_plain(stories.borrow))
        for story in (
            *(stories.meet, stories.nap, stories.skip, stories.park),
            *(stories.zombie, stories.held, stories.never),
            *(stories.once, stories.elsewhere, stories.endless),
        ):
            self.app.job(name=story.__name__, retry=RETRY)(_plain(story))

    async def live(self) -> None:
        async with self.app, asyncio.timeout(PATIENCE):
            await self.app.upgrade()
            for pool in ("claimed", "asked"):
                await self.app.pools.declare(pool, {"the only one": 1})
            await self._submit_all()
            self._running = asyncio.create_task(self.app.run(name="first", **KNOBS))
            await self._steer()
            self.app.stop()
            await self._running
            await self._look_after_others()
            # By now it is nearly alone: what it takes and frees goes in groups of its own.
            await self._submit("borrow", None, key="borrow at last")
            await self.app.run(name="second", until_idle=True, **KNOBS)

    async def _submit_all(self) -> None:
        await self._submit("never", None, delay=3600)
        with suppress(IllegalMove):
            await self.app.cancel(self._ids["never"])
        for kind in ("nap", "skip", "park", "zombie", "held"):
            await self._submit(kind, None)
        for kind in ("borrow", "once", "elsewhere", "endless"):
            await self._submit(kind, None)
        await self._submit("held", None, key="to be released")
        for saving in (True, False):
            await self._submit("meet", saving, key=f"meet {saving}")
        keys = [f"chain {n}" for n in range(4)]
        self._batch = await self.app.submit_many("chain", range(4), keys=keys, key="the batch")
        await self._batch.pause()

    async def _submit(
        self, kind: str, payload: Any, *, key: str = "", delay: float = 0
    ) -> None:
        job = await self.app.submit(kind, payload, key=key or kind, delay=delay or None)
        self._ids[key or kind] = job.id
        self._ledger.accepted(Accepted(job.id, payload, key or kind, delay))

    async def _steer(self) -> None:
        """Cancel what runs, resume what is parked, try again what has ended."""
        await self._until("held", lambda state: state is not State.WAITING)
        await self._batch.unpause()
        with suppress(IllegalMove):
            await self.app.cancel(self._ids["held"])
        await self._until_accepted("endless")
        with suppress(IllegalMove):
            await self.app.cancel(self._ids["endless"])
        await self._until("park", lambda state: state is State.PARKED or state in ENDED)
        with suppress(IllegalMove):
            await self.app.resume(self._ids["park"])
        await self._until("skip", lambda state: state in ENDED)
        if (await self.app.get(self._ids["skip"])).generation == 1:
            await self.app.retry(self._ids["skip"])
        for key in set(self._ids) - {"to be released", "never"}:
            await self._until(key, lambda state: state in ENDED)
        await self._until("to be released", lambda state: state is not State.WAITING)
        await self._batch.wait()

    async def _has_ended(self, key: str) -> bool:
        return (await self.app.get(self._ids[key])).state in ENDED

    async def _until_accepted(self, name: str) -> None:
        while not any(f"-{name}-" in key for key in self._machine.works()):  # noqa: ASYNC110 — it is another's file
            await asyncio.sleep(0.02)

    async def _until(self, key: str, holds: Callable[[State], bool]) -> None:
        while not holds((await self.app.get(self._ids[key])).state):
            assert self._running is not None
            if self._running.done():
                await self._running
                raise AssertionError("the runner left before it was told to")
            await asyncio.sleep(0.02)

    async def _look_after_others(self) -> None:
        database = await self.app.database()
        await Watchdog(database, "somebody", Process.this(), 60.0).run_once()


def _plain(story: Any) -> Any:
    """Of a method of one payload, or of none, a story as `app.job` wants it."""

    async def run(ctx: Context, payload: Any) -> Any:
        return await (story(ctx) if payload is None else story(ctx, payload))

    return run


def note_passes(folder: Path) -> None:
    seen: set[str] = set()

    def passed(name: str) -> None:
        if name not in seen:
            seen.add(name)
            with (folder / f"passed-{os.getpid()}").open("a") as file:
                file.write(f"{name}\n")

    crashpoint.on_pass = passed


async def main(url: str, folder: Path) -> None:
    note_passes(folder)
    store.BITE = runners.BITE = TAKEN_AT_ONCE
    await CrashWorld(url, folder).live()


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
