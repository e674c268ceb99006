"""The effect ledger: what stories really did, one JSON line each, in a file per process.

Nothing of it goes through the queue: a line is one write to a file opened for appending, so it is
there whatever happens to the process afterwards.
"""

import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from retoma import Context
from retoma.db import moment
from retoma.db.clock import database_clock
from tests.chaos.history import Accepted, Effect
from tests.lines import whole_lines


class Ledger:
    """This process's own file in a folder that all of them share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clock = database_clock()

    def effect(self, ctx: Context, step: str, phase: str, value: Any = None) -> None:
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

    def death(self, pid: int) -> None:
        """It does nothing from now on."""
        append(self._folder / f"deaths-{os.getpid()}.jsonl", {"pid": pid, "at": self._clock()})

    def accepted(self, told: Accepted) -> None:
        line = {"job": told.job, "payload": told.payload, "key": told.key, "delay": told.delay}
        append(self._folder / f"accepted-{os.getpid()}.jsonl", line)


def append(path: Path, line: dict[str, Any]) -> None:
    """One line, one write: lines of two processes never mix."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, json.dumps(line).encode() + b"\n")
    finally:
        os.close(descriptor)


def effects(folder: Path) -> list[Effect]:
    return [Effect(**line | {"at": _at(line["at"])}) for line in lines(folder, "effects-*")]


def accepted(folder: Path) -> list[Accepted]:
    return [Accepted(**line) for line in lines(folder, "accepted-*")]


def deaths(folder: Path) -> dict[int, datetime]:
    return {line["pid"]: _at(line["at"]) for line in lines(folder, "deaths-*")}


def lines(folder: Path, pattern: str) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob(pattern)):
        for line in whole_lines(path):
            yield json.loads(line)


def _at(microseconds: int) -> datetime:
    at = moment(microseconds)
    assert at is not None
    return at
