"""From submit to start, with a runner that has nothing to do: the same pace and the same clock for all sides.

The submitter stamps the time just before it calls submit; the story takes the time in its first line. So
the figure holds the whole way: the submit's own commit, the bell, the claim, the start.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

START = 2.0  # seconds; a runner that was just let go connects and begins to listen
NANOSECONDS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Pace:
    """How many submits, how many of the first to forget, and the rest in seconds between two."""

    submits: int = 210
    forget: int = 10
    rest: float = 0.02


def start_slowly() -> None:
    time.sleep(START)


async def submitting(pace: Pace, submit: Callable[[int], Awaitable[object]]) -> None:
    for _ in range(pace.submits):
        await submit(time.time_ns())
        await asyncio.sleep(pace.rest)


def submitting_blocking(pace: Pace, submit: Callable[[int], object]) -> None:
    for _ in range(pace.submits):
        submit(time.time_ns())
        time.sleep(pace.rest)


def figures_of(waits: Sequence[int], pace: Pace) -> tuple[float, float]:
    """p50 and p99 in milliseconds, without the warm-up."""
    kept = [wait / NANOSECONDS_PER_MS for wait in waits[pace.forget :]]
    hundredths = statistics.quantiles(kept, n=100, method="inclusive")
    return hundredths[49], hundredths[98]
