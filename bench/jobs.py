"""The stories that are measured. `bench.jobs:app` is what `retoma runner --app` takes."""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from retoma import Context, Retoma

STEPS = 10
VARIABLE = "RETOMA_DATABASE_URL"


@dataclass(frozen=True, slots=True)
class Bench:
    """A Retoma with the measured kinds, by their names."""

    app: Retoma
    kinds: dict[str, Any]


def hear_nothing(_wait: int) -> None:
    """Where nobody asks how long it took."""


def make_bench(url: str, hear: Callable[[int], None] = hear_nothing) -> Bench:
    """`hear` is told, for every job of the kind `timed`, the nanoseconds from submit to start."""

    async def timed(_ctx: Context, sent: int) -> None:
        hear(time.time_ns() - sent)

    app = Retoma(url)
    stories = (noop, ten_steps, patient, timed)
    return Bench(
        app, {story.__name__: app.job(name=story.__name__)(story) for story in stories}
    )


async def noop(_ctx: Context, _payload: dict[str, int]) -> None:
    """Nothing at all: what is left is the engine."""


async def ten_steps(ctx: Context, _payload: dict[str, int]) -> None:
    for number in range(STEPS):
        await ctx.step(f"step_{number}", echo, number)


async def patient(_ctx: Context, seconds: float) -> None:
    """Runs, and does nothing else."""
    await asyncio.sleep(seconds)


async def echo(number: int) -> int:
    return number


app = make_bench(os.environ.get(VARIABLE, "sqlite:///bench.db")).app
