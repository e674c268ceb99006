"""The doors through which time, chance and ids come in. Tests hand in others."""

import asyncio
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from uuid import uuid4

from retoma.db.clock import offset_reader

# A suspended machine stops CLOCK_MONOTONIC, and with it every deadline measured by it.
BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """Decides only when to look. What is true at what time, the database's clock says."""

    def __init__(self) -> None:
        self._offset = offset_reader()

    def now(self) -> float:
        """Seconds since the machine started; never set back."""
        return time.clock_gettime(BOOTTIME) + self._offset() / 1_000_000

    def wall(self) -> float:
        """What this host takes for the time, in seconds since 1970. Only a doctor wants to know."""
        return time.time() + self._offset() / 1_000_000  # noqa: TID251 — this is the door

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def give_way(self) -> None:
        """Whoever is ready goes first; no time passes."""
        await asyncio.sleep(0)

    def moved(self) -> int | None:
        """Microseconds by which a test has moved the database's time too; None: it keeps its own."""
        return None


class Ids:
    """Names nobody has had before."""

    def new(self) -> str:
        return uuid4().hex

    def unguessable(self, size: int) -> bytes:
        """Chance that guards something."""
        return os.urandom(size)


def chance() -> Random:
    """Chance that spreads retries and guards nothing; tests hand in a seeded one."""
    return Random()  # noqa: S311


@dataclass(frozen=True, slots=True)
class Process:
    """Where a runner lives, well enough for a neighbour to see that it does not any more."""

    host: str
    pid: int
    started: str

    @classmethod
    def this(cls, host: str = "") -> "Process":
        """`host`: what the machine is called, where its own name does not tell it from others."""
        pid = os.getpid()
        return cls(host=_host(host), pid=pid, started=_started(pid) or "")

    def gone(self) -> bool:
        """Provably: same host, and no process of that number and that start."""
        return bool(self.started) and _started(self.pid) != self.started


class Processes:
    """What a runner asks its machine about processes. A simulation hands in its own."""

    def this(self, host: str = "") -> Process:
        """The process of whoever asks."""
        return Process.this(host)

    def gone(self, process: Process) -> bool:
        """Whether a process of this machine has provably ended."""
        return process.gone()


def _host(called: str = "") -> str:
    """The machine, its present boot, and the namespace in which our pids mean something."""
    parts = [called or platform.node()]
    boot = Path("/proc/sys/kernel/random/boot_id")
    if boot.exists():
        parts.append(boot.read_text().strip())
    namespace = Path("/proc/self/ns/pid")
    if namespace.is_symlink():
        parts.append(str(namespace.readlink()))
    return " ".join(parts)


def _started(pid: int) -> str | None:
    """When the process began, in ticks; None where there is none (a zombie has ended)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *rest = text.rpartition(")")[2].split()
    return None if state in "ZX" else rest[18]
