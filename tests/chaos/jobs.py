"""The stories that chaos is tried on. Each tells the effect ledger what it does."""

import asyncio
import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

from retoma import Context, Edge, LeaseLost, Limit, Remote, Retoma, Retry, Status, Transient
from retoma.engine.checker import effect_ledger
from retoma.engine.checker.effect_ledger import LedgerWriter, append
from tests.chaos import hang_jobs, limited_jobs, paid_jobs

FOLDER = "RETOMA_TEST_LEDGER"
URL = "RETOMA_DATABASE_URL"
REMOTE_PATIENCE = "RETOMA_TEST_REMOTE_PATIENCE"  # seconds for an answer of the other side
NOBODY_WAITS_LONGER = 600.0  # seconds: longer than a test; its processes end with it

CAP = 3  # capped jobs of one site at once
TOTAL = 60  # and of all sites

# Quick, so that a run is short; the bounds are checked by the same numbers.
RETRY = Retry(attempts=3, base=0.05, cap=1.0)
# A service that fails every fifth time is no reason to give up.
PATIENT = Retry(attempts=50, base=0.05, cap=0.2)


def build(url: str, folder: Path) -> Retoma:
    """An app that knows every story of these tests."""
    app = Retoma(url)
    ledger = LedgerWriter(folder)
    stories = Stories(ledger, folder)
    for story in (
        *(stories.chain, stories.poison, stories.neighbour, stories.hold),
        *(stories.late_save, stories.late_report, stories.late_settle),
        *(stories.late_evidence, stories.late_start, stories.hopeless, stories.heavy),
        *(stories.block, stories.borrow, stories.call),
    ):
        app.job(name=story.__name__, retry=RETRY)(_plain(story))
    for story in (stories.mission, stories.pair, stories.hasty):
        app.job(name=story.__name__, retry=PATIENT)(_plain(story))
    app.job(name="borrow_claimed", retry=RETRY, holds="things")(_plain(stories.borrow))
    app.job(name="spoil", retry=RETRY)(_plain(stories.borrow))
    app.job(name="capped", retry=RETRY, limit=[TOTAL, Limit(CAP, per="site")])(
        _plain(stories.capped)
    )
    hang_jobs.register(app, ledger)
    paid_jobs.register(app, folder)
    limited_jobs.register(app, folder)
    return app


def from_environment() -> Retoma:
    return build(os.environ[URL], Path(os.environ[FOLDER]))


async def _nothing() -> None:
    """Something that is done at once."""


def _plain(story: Any) -> Any:
    async def run(ctx: Context, payload: Any) -> Any:
        return await story(ctx, payload)

    return run


STATUSES = {
    "queued": Edge.GOING,
    "running": Edge.GOING,
    "completed": Edge.DONE,
    "failed": Edge.FAILED,
    "unheard of": Edge.GONE,
    "canceled": Edge.STOPPED,
}
PORT = "service.port"  # the file in which the other side's service says where it listens


class Elsewhere:
    """How a mission speaks to the service of `remote_service.py`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def remote(self) -> Remote:
        return Remote(
            send=self.send,
            ask=self.ask,
            find=self.find,
            stop=self.stop,
            statuses=STATUSES,
            interval=0.05,
            absent_after=3,
        )

    async def send(self, key: str, payload: Any) -> str:
        answer = await self._call("POST", "/jobs", {"key": key})
        return str(answer["id"])

    async def ask(self, handle: str) -> Status:
        answer = await self._call("GET", f"/jobs/{handle}")
        return Status(answer["status"], value=handle, key=answer["key"])

    async def find(self, key: str) -> Any:
        return (await self._call("GET", f"/jobs?key={key}"))["id"]

    async def stop(self, handle: str) -> None:
        await self._call("DELETE", f"/jobs/{handle}")

    async def _call(self, method: str, path: str, body: Any = None) -> Any:
        import httpx2

        port = (self._folder / PORT).read_text()
        patience = float(os.environ.get(REMOTE_PATIENCE, "2"))
        async with httpx2.AsyncClient(timeout=patience) as client:
            answer = await client.request(method, f"http://127.0.0.1:{port}{path}", json=body)
            return answer.json()


class Stories:
    """What they all need: where to tell, and where the gates are."""

    def __init__(self, ledger: LedgerWriter, folder: Path) -> None:
        self._ledger = ledger
        self._folder = folder

    async def mission(self, ctx: Context, payload: dict[str, Any]) -> Any:
        """Work on somebody else's machine, between two steps of our own."""
        await self._step(ctx, "before", 1)
        handle = await ctx.remote("scrape", Elsewhere(self._folder).remote(), payload)
        await self._step(ctx, "after", 1)
        return handle

    async def pair(self, ctx: Context, payload: dict[str, Any]) -> Any:
        """Two pieces of work at once; of those that fail the story makes something. No attempt of it
        fails: another one would take another way, and no more ask after what this one had sent."""
        remote = Elsewhere(self._folder).remote()

        async def left() -> str:
            try:
                return str(await ctx.remote("left", remote, payload))
            except Transient:
                return str(await ctx.remote("instead", remote, payload))

        right = ctx.remote("right", remote, payload)
        both = await asyncio.gather(left(), right, return_exceptions=True)
        return [str(each) for each in both]

    async def hasty(self, ctx: Context, payload: dict[str, Any]) -> Any:
        """Ends as soon as its work is accepted, and forgets it."""
        work = ctx.remote("scrape", Elsewhere(self._folder).remote(), payload)
        forgotten = asyncio.create_task(work)
        await self._step(ctx, "soon", 100)
        return forgotten.done()

    async def borrow(self, ctx: Context, payload: dict[str, Any]) -> None:
        """Hold a thing for a while, and say so; perhaps say that it did not work."""
        # Progress: else whoever is killed with three of its runners is poison, by definition.
        await ctx.step(f"claim {ctx.epoch}", _nothing)
        thing = await ctx.use("things", scope=payload["scope"])
        self._hold_told(ctx, thing.name, "got")
        if "gate" in payload:
            await self._gate(ctx, payload["gate"])
        await asyncio.sleep(payload.get("ms", 10) / 1000)
        self._hold_told(ctx, thing.name, "let")
        await thing.release(worked=not payload.get("bad"))

    async def call(self, ctx: Context, payload: Any) -> None:
        """Call something whose rate is shared."""
        await ctx.rate("site")
        line = {"at": time.monotonic_ns(), "pid": os.getpid()}
        append(self._folder / f"calls-{os.getpid()}.jsonl", line)

    def _hold_told(self, ctx: Context, thing: str, event: str) -> None:
        line = {
            "event": event,
            "thing": thing,
            "job": ctx.job,
            "epoch": ctx.epoch,
            "pid": os.getpid(),
            "at": time.monotonic_ns(),
        }
        append(self._folder / f"holds-{os.getpid()}.jsonl", line)

    async def chain(self, ctx: Context, payload: dict[str, Any]) -> list[Any]:
        """Steps one after another, then three at once; some fail the first time."""
        values = [
            await self._step(ctx, f"step{n}", payload.get("ms", 10))
            for n in range(payload.get("steps", 3))
        ]
        if ctx.attempt <= payload.get("fails", 0):
            raise Transient("not this time")
        loop = payload.get("each", 0)
        each = partial(self._work, ctx, "each", payload.get("ms", 10))
        return values + await ctx.each("each", [str(n) for n in range(loop)], each)

    async def poison(self, ctx: Context, payload: dict[str, Any]) -> None:
        """Kills whoever runs it, once its neighbours are at work; at last it has none."""
        self._ledger.effect(ctx, "kill", "start")
        while ctx.epoch < 3 and self._started_here("work") < payload["beside"]:  # noqa: ASYNC110 — a file
            await asyncio.sleep(0.02)
        os.kill(os.getpid(), signal.SIGKILL)

    def _started_here(self, step: str) -> int:
        """How many jobs have begun this step in this process."""
        effects = effect_ledger.effects(self._folder)
        return len({e.job for e in effects if (e.step, e.pid) == (step, os.getpid())})

    async def neighbour(self, ctx: Context, payload: dict[str, Any]) -> Any:
        """Slow while others die beside it, quick once it is left in peace."""
        return await self._step(ctx, "work", 3_600_000 if ctx.epoch <= payload["slow"] else 5)

    async def hold(self, ctx: Context, payload: dict[str, Any]) -> Any:
        """Stays in its first step until its gate opens; only the first claim waits."""
        return [
            await ctx.step("held", self._held, ctx, payload["gate"]),
            await self._step(ctx, "after", 5),
        ]

    async def block(self, ctx: Context, payload: dict[str, Any]) -> Any:
        """Holds the event loop until its gate opens: nothing else runs in this process."""
        self._ledger.effect(ctx, payload["gate"], "waits")
        until = time.monotonic() + NOBODY_WAITS_LONGER
        while not (self._folder / payload["gate"]).exists() and time.monotonic() < until:
            time.sleep(0.02)  # noqa: ASYNC251, TID251  # the very thing
        return await self._step(ctx, "after", 5)

    async def heavy(self, ctx: Context, payload: dict[str, Any]) -> Any:
        """Waits for its gate, and then has much to keep: evidence, a step, a result."""
        if payload.get("evidence"):
            await self._gate(ctx, payload["gate"])
            await ctx.attach("page", os.urandom(payload["size"]))
        return await ctx.step("kept", self._heavy, ctx, payload["gate"], payload["size"])

    async def hopeless(self, ctx: Context, payload: dict[str, Any]) -> None:
        """Never succeeds."""
        await asyncio.sleep(payload.get("ms", 10) / 1000)
        raise Transient("it never works")

    async def capped(self, ctx: Context, payload: dict[str, Any]) -> Any:
        """Tells when it is inside of its key, and when no more."""
        keys = (f"site:{payload['site']}", "kind:capped")
        for key in keys:
            self._ledger.effect(ctx, key, "enter")
        value = await self._step(ctx, "work", payload["ms"])
        for key in keys:
            self._ledger.effect(ctx, key, "leave")
        if ctx.attempt <= payload.get("fails", 0):
            raise Transient("not this time")
        return value

    # — stories of a runner that sleeps through its lease —

    async def late_save(self, ctx: Context, payload: dict[str, Any]) -> Any:
        with self._telling(ctx, "save"):
            return await ctx.step("held", self._held, ctx, payload["gate"])

    async def late_report(self, ctx: Context, payload: dict[str, Any]) -> None:
        await self._gate(ctx, payload["gate"])
        with self._telling(ctx, "report"):
            await ctx.progress(0.5, f"epoch {ctx.epoch}")

    async def late_settle(self, ctx: Context, payload: dict[str, Any]) -> Any:
        await self._gate(ctx, payload["gate"])
        self._ledger.effect(ctx, "settle", "tried")
        return ctx.epoch

    async def late_evidence(self, ctx: Context, payload: dict[str, Any]) -> None:
        await self._gate(ctx, payload["gate"])
        with self._telling(ctx, "evidence"):
            await ctx.attach("page.html", f"epoch {ctx.epoch}")

    async def late_start(self, ctx: Context, payload: dict[str, Any]) -> Any:
        await self._gate(ctx, payload["gate"])
        self._ledger.effect(ctx, "start", "tried")
        return await self._step(ctx, "late", 5)

    # — what they are made of —

    async def _step(self, ctx: Context, name: str, ms: float) -> Any:
        return await ctx.step(name, self._work, ctx, name, ms)

    async def _work(self, ctx: Context, name: str, ms: float, item: str = "") -> str:
        told = f"{name}/{item}" if item else name
        self._ledger.effect(ctx, told, "start")
        await asyncio.sleep(ms / 1000)
        value = f"{told} of job {ctx.job} by epoch {ctx.epoch}"
        self._ledger.effect(ctx, told, "end", value)
        return value

    async def _held(self, ctx: Context, gate: str) -> str:
        self._ledger.effect(ctx, "held", "start")
        await self._gate(ctx, gate)
        value = f"held until the gate by epoch {ctx.epoch}"
        self._ledger.effect(ctx, "held", "end", value)
        return value

    async def _heavy(self, ctx: Context, gate: str, size: int) -> str:
        self._ledger.effect(ctx, "kept", "start")
        await self._gate(ctx, gate)
        value = f"job {ctx.job} by epoch {ctx.epoch} ".ljust(size, "x")
        self._ledger.effect(ctx, "kept", "end", value)
        return value

    async def _gate(self, ctx: Context, gate: str) -> None:
        self._ledger.effect(ctx, gate, "waits")
        async with asyncio.timeout(NOBODY_WAITS_LONGER):
            while ctx.epoch == 1 and not (self._folder / gate).exists():  # noqa: ASYNC110 — the file is opened by another process
                await asyncio.sleep(0.02)

    def _telling(self, ctx: Context, what: str) -> "_Telling":
        return _Telling(self._ledger, ctx, what)


class _Telling:
    """Tells the ledger whether the write inside was refused."""

    def __init__(self, ledger: LedgerWriter, ctx: Context, what: str) -> None:
        self._ledger = ledger
        self._ctx = ctx
        self._what = what

    def __enter__(self) -> None:
        self._ledger.effect(self._ctx, self._what, "tried")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        phase = "refused" if isinstance(error, LeaseLost) else "accepted"
        self._ledger.effect(self._ctx, self._what, phase)
