"""Measure families in a process of their own: `python -m tests.cost.measure FILE MODULE… [--soak]` writes a line for each
size. What the program logs costs too.

In every run an input is fed once, and once more where it cost too much: the cheaper time counts. In the soak each is fed twice."""

import asyncio
import ctypes
import gc
import importlib
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from tests.cost.family import Family
from tests.cost.judge import flaws_of

TIMES = 2  # in the soak; the cheaper one counts
WARM = 16  # of the smallest input: what is made once is made
PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


async def measured(family: Family, there: Any, size: int, times: int) -> dict[str, Any]:
    """CPU of the whole process, CPU for which the loop was held, and memory at the peak."""
    given = family.make(size)
    found: list[tuple[float, float, int]] = []
    for _ in range(times):
        base = _rest()
        with _holds() as holds:
            cpu = time.process_time()
            await asyncio.create_task(_read(family, there, given))
            found.append((time.process_time() - cpu, max(holds), _peak() - base))
    cpu, memory = min(each[0] for each in found), max(each[2] for each in found)
    held = min(each[1] for each in found)  # the second may find what the first one kept
    return {"family": family.title, "size": size, "cpu": cpu, "held": held, "memory": memory}


async def _read(family: Family, there: Any, given: Any) -> None:
    await family.read(there, given)


@contextmanager
def _holds() -> Iterator[list[float]]:
    """Seconds of CPU for which the loop did nothing else, one for each callback."""
    holds: list[float] = []
    handles: Any = asyncio.Handle
    run = handles._run

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        holds.append(time.thread_time() - began)

    handles._run = timed
    try:
        yield holds
    finally:
        handles._run = run


def _rest() -> int:
    """Give back what can be; the peak begins here."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _peak()


def _peak() -> int:
    found = PEAK.search(Path("/proc/self/status").read_text(encoding="ascii"))
    assert found is not None
    return int(found[1]) * 1024


async def rows_of(family: Family, there: Any, *, soak: bool) -> list[dict[str, Any]]:
    sizes = family.sizes(soak=soak)
    await family.read(there, family.make(sizes[0] // WARM))
    times = TIMES if soak else 1
    rows = [await measured(family, there, each, times) for each in sizes]
    if soak or not flaws_of(family, rows):
        return rows
    again = [await measured(family, there, each, times) for each in sizes]
    return [min(pair, key=lambda row: row["cpu"]) for pair in zip(rows, again, strict=True)]


async def run(module: str, out: TextIO, *, soak: bool) -> None:
    doors = importlib.import_module(module)
    families: list[Family] = doors.FAMILIES
    async with doors.opened() as there:
        gc.collect()
        gc.freeze()  # else each look for garbage walks through the whole program
        for family in (each for each in families if each.in_gate or soak):
            out.writelines(
                f"{json.dumps(row)}\n" for row in await rows_of(family, there, soak=soak)
            )


async def run_all(modules: Sequence[str], out: TextIO, *, soak: bool) -> None:
    for each in modules:
        await run(each, out, soak=soak)


if __name__ == "__main__":
    told, *words = sys.argv[1:]
    with Path(told).open("w", encoding="utf-8") as file:
        chosen = [each for each in words if each != "--soak"]
        asyncio.run(run_all(chosen, file, soak="--soak" in words))
