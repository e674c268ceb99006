"""The jobs of the demo: reports in five steps that wait, stumble and, two of them, cannot succeed.

Every step leaves a line in a ledger outside the queue the moment it runs, so that what was done
can be held against what the queue says was done.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from random import Random

from retoma import Context, Permanent, Retoma, Retry, Transient
from retoma.cli.world import LEDGER
from retoma.engine.ports import Clock

PAGES = 3

app = Retoma("sqlite:///demo.db")  # the runners of the demo are given the real address


class Mood(StrEnum):
    """What will happen to an order."""

    FINE = "fine"
    SHAKY = "shaky"  # fails once, works the second time
    GONE = "gone"  # hopeless, and says so
    BROKEN = "broken"  # hopeless, but nobody knows before the last try


@dataclass(frozen=True, slots=True)
class Order:
    """One report to be made."""

    number: int
    mood: Mood
    pace: float  # seconds a step takes


@dataclass(frozen=True, slots=True)
class Ran:
    """A line of the ledger: this step ran, under this epoch."""

    job: int
    epoch: int
    step: str


@app.job(retry=Retry(attempts=3, base=0.2, cap=1.0))
async def report(ctx: Context, order: Order) -> str:
    """Fetch, read page by page, send. After a crash a finished step is not done again."""
    title = await ctx.step("fetch", fetch, ctx, order)
    words = await ctx.each("read", range(PAGES), partial(read, ctx, order))
    return await ctx.step("send", send, ctx, order, title, sum(words))


async def fetch(ctx: Context, order: Order) -> str:
    await _work(ctx, order, "fetch")
    if order.mood is Mood.GONE:
        raise Permanent(f"order {order.number}: the page does not exist", code="page_gone")
    return f"report {order.number}"


async def read(ctx: Context, order: Order, page: int) -> int:
    await _work(ctx, order, f"read/{page}")
    return 100 * page + order.number


async def send(ctx: Context, order: Order, title: str, words: int) -> str:
    await _work(ctx, order, "send")
    if order.mood is Mood.BROKEN or (order.mood is Mood.SHAKY and ctx.attempt == 1):
        raise Transient(f"order {order.number}: the printer answered 503", code="printer_503")
    return f"{title}: {words} words"


def orders(rng: Random, count: int, pace: float) -> list[Order]:
    """Mostly fine, a tenth shaky, two hopeless."""
    hopeless = dict(zip(rng.sample(range(count), 2), (Mood.GONE, Mood.BROKEN), strict=True))
    return [
        Order(
            number=number,
            mood=hopeless.get(number) or (Mood.SHAKY if rng.random() < 0.1 else Mood.FINE),
            pace=pace * (0.5 + rng.random()),
        )
        for number in range(count)
    ]


def read_ledger(path: Path) -> Sequence[Ran]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Ran(int(job), int(epoch), step) for job, epoch, step in map(str.split, lines)]


async def _work(ctx: Context, order: Order, step: str) -> None:
    _write_down(ctx.job, ctx.epoch, step)
    await Clock().sleep(order.pace)


def _write_down(job: int, epoch: int, step: str) -> None:
    """One write to a file opened for appending: lines of two processes never mix."""
    path = os.environ.get(LEDGER)
    if path is None:
        return
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, f"{job} {epoch} {step}\n".encode())
    finally:
        os.close(file)
