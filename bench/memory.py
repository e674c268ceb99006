"""How much memory a runner takes that has nothing to do, and a submission of many jobs."""

import asyncio
import re
from pathlib import Path

from bench import ours
from bench.child import call
from bench.compare import Absent, Figures, Measure
from bench.ours import Address
from bench.places import Places

HERE = "bench.memory"
STATUS = Path("/proc/self/status")
REST = 3.0  # seconds: booted, and one look around
KIB_PER_MB = 1024


# --- In the parent


def memory(at: Address, slots: int, jobs: int) -> Measure:
    """MB of a runner with `slots` idle slots; at most of a process that submits `jobs` at once."""

    def measure(places: Places) -> Figures:
        if not STATUS.exists():
            raise Absent("not installed: /proc, which tells how much memory a process has")
        idle = call(f"{HERE}:idle", url=at(places), slots=slots)
        submitting = call(f"{HERE}:submit", url=at(places), jobs=jobs)
        return idle, submitting

    return measure


# --- In a child


def idle(url: str, slots: int) -> float:
    return ours.run(idle_runner(url, slots))


async def idle_runner(url: str, slots: int) -> float:
    from bench.jobs import make_bench

    async with make_bench(url).app as app:
        await app.upgrade()
        running = asyncio.create_task(app.run(slots=slots))
        await asyncio.sleep(REST)
        megabytes = told("VmRSS")
        app.stop()
        await running
    return megabytes


def submit(url: str, jobs: int) -> float:
    ours.fill(url, "noop", jobs)
    return told("VmHWM")


def told(name: str) -> float:
    """By the process itself: what getrusage tells is the parent's too."""
    found = re.search(rf"^{name}:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) / KIB_PER_MB
