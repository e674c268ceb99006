"""The effect ledger: what handlers really did, kept outside the database, one JSON line each.

The checker compares it with the database. A line is one write to a file opened for appending, so it is
there whatever happens to the process afterwards, and lines of two processes never mix.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from retoma.db import moment
from retoma.db.clock import database_clock

START, END, CHARGE = "start", "end", "charge"  # phases that the checker knows


@dataclass(frozen=True, slots=True)
class Effect:
    """A line about a job, written by its handler. The checker knows the phases start, end, charge."""

    job: int
    gen: int
    epoch: int
    step: str
    pid: int
    phase: str
    at: datetime
    value: Any = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A submission whose answer reached the submitter."""

    job: int
    payload: Any
    key: str | None = None
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Ledger:
    """All that is known from outside the database, by job."""

    effects: Mapping[int, list[Effect]] = field(default_factory=dict)
    accepted: Mapping[int, list[Accepted]] = field(default_factory=dict)


class Doing(Protocol):
    """What a handler is at: its Context."""

    @property
    def job(self) -> int: ...
    @property
    def generation(self) -> int: ...
    @property
    def epoch(self) -> int: ...


class LedgerWriter:
    """This process's own files in a folder that all processes share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clock = database_clock()

    def effect(self, ctx: Doing, step: str, phase: str, value: Any = None) -> None:
        """Record that a step of a job starts or ends, or what it charged."""
        line = {
            "job": ctx.job,
            "gen": ctx.generation,
            "epoch": ctx.epoch,
            "step": step,
            "pid": os.getpid(),
            "phase": phase,
            "at": self._clock(),
            "value": value,
        }
        append(self._folder / f"effects-{os.getpid()}.jsonl", line)

    def accepted(self, each: Accepted) -> None:
        """Record a submission that was answered."""
        line = {"job": each.job, "payload": each.payload, "key": each.key, "delay": each.delay}
        append(self._folder / f"accepted-{os.getpid()}.jsonl", line)

    def death(self, pid: int) -> None:
        """Record that a process does nothing from now on."""
        append(self._folder / f"deaths-{os.getpid()}.jsonl", {"pid": pid, "at": self._clock()})


def append(path: Path, line: Mapping[str, Any]) -> None:
    """Append one line with one write."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, json.dumps(line).encode() + b"\n")
    finally:
        os.close(descriptor)


def read_ledger(folder: Path) -> Ledger:
    """Read all files of a ledger."""
    by_job: dict[int, list[Effect]] = {}
    for effect in effects(folder):
        by_job.setdefault(effect.job, []).append(effect)
    answered: dict[int, list[Accepted]] = {}
    for each in accepted(folder):
        answered.setdefault(each.job, []).append(each)
    return Ledger(by_job, answered)


def effects(folder: Path) -> list[Effect]:
    return [Effect(**line | {"at": _at(line["at"])}) for line in lines(folder, "effects-*")]


def accepted(folder: Path) -> list[Accepted]:
    return [Accepted(**line) for line in lines(folder, "accepted-*")]


def deaths(folder: Path) -> dict[int, datetime]:
    return {line["pid"]: _at(line["at"]) for line in lines(folder, "deaths-*")}


def lines(folder: Path, pattern: str) -> Iterator[dict[str, Any]]:
    """Read whole lines: the last one may still be on its way into the file."""
    for path in sorted(folder.glob(pattern)):
        text = path.read_text(encoding="utf-8")
        for line in text[: text.rfind("\n") + 1].splitlines():
            yield json.loads(line)


def _at(microseconds: int) -> datetime:
    at = moment(microseconds)
    assert at is not None  # noqa: S101 — a number always gives a time
    return at
