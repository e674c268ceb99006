"""What handlers really did: one append-only file outside every system, and the gates at which they wait."""

import asyncio
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.zombies.scenarios import BY_NAME, FIRST, JOB, ONE, TWO, Moment

FILE = "ledger.jsonl"
START, EFFECT, STOPPED = "start", "effect", "stopped"
LOOK = 0.02  # seconds between two looks at a gate: another process opens it


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the ledger, as its handler wrote it."""

    scenario: str
    part: str
    worker: str
    phase: str
    at: float
    value: str = ""


class GaveUp(Exception):
    """The failure that a scenario asks of the first worker."""


class Ledger:
    """The file that all processes append to. One line is one write: lines of two processes never mix."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def append(
        self, scenario: str, part: str, worker: str, phase: str, value: str = ""
    ) -> None:
        line = Line(scenario, part, worker, phase, time.time(), value)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, json.dumps(asdict(line)).encode() + b"\n")
        finally:
            os.close(descriptor)

    def lines(self) -> list[Line]:
        """All whole lines; the last one may still be on its way into the file."""
        if not self._path.exists():
            return []
        text = self._path.read_text(encoding="utf-8")
        return [Line(**json.loads(line)) for line in text[: text.rfind("\n") + 1].splitlines()]


class Gates:
    """Files whose existence lets one worker go on in one part of one job."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, worker: str, scenario: str, part: str) -> None:
        self._gate(worker, scenario, part).touch()

    async def wait(self, worker: str, scenario: str, part: str) -> None:
        while not self._gate(worker, scenario, part).exists():  # noqa: ASYNC110
            await asyncio.sleep(LOOK)

    def _gate(self, worker: str, scenario: str, part: str) -> Path:
        return self._folder / f"{worker}.{scenario}.{part}.open"


class Handler:
    """The job that every system runs: one worker's side of it."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._ledger = Ledger(folder)
        self._gates = Gates(folder)
        self._worker = worker

    async def run(self, scenario: str) -> str:
        """A job without steps."""
        return await self.part(scenario, JOB)

    async def part(self, scenario: str, part: str) -> str:
        """Wait at a gate, do the effect, and return who did it; only a worker's first run waits or fails."""
        known = [e for e in self._ledger.lines() if (e.scenario, e.part) == (scenario, part)]
        mine = [line for line in known if line.worker == self._worker]
        self._ledger.append(scenario, part, self._worker, START)
        if BY_NAME[scenario].moment is Moment.KILLED:
            return await self._part_of_killed(scenario, part, first=not known)
        if not mine:
            await self._wait(scenario, part)
        value = self._worker if not mine else f"{self._worker} again"
        self._ledger.append(scenario, part, self._worker, EFFECT, value)
        if not mine and self._worker == FIRST and BY_NAME[scenario].fails:
            raise GaveUp(f"{scenario}: the first worker fails")
        return value

    async def both(self, scenario: str) -> list[str]:
        """A job of two steps, for a system that has none: all of it runs again."""
        return [await self.part(scenario, ONE), await self.part(scenario, TWO)]

    async def _part_of_killed(self, scenario: str, part: str, *, first: bool) -> str:
        self._ledger.append(scenario, part, self._worker, EFFECT, self._worker)
        if part == TWO and first:
            await (
                asyncio.Event().wait()
            )  # between its effect and its completion, until it is killed
        return self._worker

    async def _wait(self, scenario: str, part: str) -> None:
        try:
            await self._gates.wait(self._worker, scenario, part)
        except asyncio.CancelledError:
            self._ledger.append(scenario, part, self._worker, STOPPED)
            raise


def handler(folder: str, worker: str) -> Handler:
    """The handler of a child process, from what it was called with."""
    return Handler(Path(folder), worker)
