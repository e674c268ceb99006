"""A small world on this machine: a folder, a database in it, and what its programs are told."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from retoma.console.exits import Exit, Stop
from retoma.console.processes import RunnerProcess
from retoma.engine.isolation.scratch import sweep
from retoma.words import say

HOME = Path(".retoma")
TICK = 0.25  # seconds: a person is watching, and a neighbour's death should show at once
GRACE = 5.0
LEASE = 60.0  # seconds, and the beats in it, as they are unless somebody says otherwise
BEATS = 6
KEY_FILE = "secret.key"  # seals what the ads orchestrator knows of workers and proxies
PRIVATE = {"RETOMA_PRIVATE_HOSTS": "127.0.0.1"}  # all of this world is here


@dataclass(frozen=True, slots=True)
class World:
    """Where it is and how wide it is."""

    folder: Path
    slots: int  # of each runner
    lease: float = LEASE  # seconds

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'work.db'}"

    @property
    def key_file(self) -> Path:
        return self.folder / KEY_FILE

    @property
    def environment(self) -> dict[str, str]:
        """What everybody in this world is told, as a machine would tell it."""
        return {
            "RETOMA_DATABASE_URL": self.url,
            "RETOMA_TICK": str(TICK),
            "RETOMA_GRACE": str(GRACE),
            "RETOMA_LEASE": str(self.lease),
            "RETOMA_BEAT": str(self.lease / BEATS),
            "RETOMA_SECRET_KEY_FILE": str(self.key_file),
            **PRIVATE,
        }

    async def start(self, name: str) -> RunnerProcess:
        """A real `retoma runner`, in a process of its own."""
        return await RunnerProcess.start(
            ("--slots", str(self.slots)),
            name=name,
            log_file=self.folder / f"{name.replace(' ', '-')}.log",
        )


@contextmanager
def opened(name: str, *, slots: int, anew: bool, lease: float = LEASE) -> Iterator[World]:
    """The world of this name in this folder, for us alone.

    When the block ends, the temp folders of its killed programs go: no program starts after them and sweeps.
    """
    folder = HOME / name
    HOME.mkdir(exist_ok=True)
    lock = os.open(HOME / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Stop(
                Exit.TEMPORARY,
                say("`retoma {name}` is already running in this folder", name=name),
            ) from None
        if anew and folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(exist_ok=True)
        yield World(folder, slots, lease)
    finally:
        os.close(lock)
        sweep()
