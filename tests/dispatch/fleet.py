"""Celery workers as a team starts them, over the world of the chaos tests."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retoma.dispatch.celery import CeleryDispatcher
from tests import nursery
from tests.chaos.world import ROOT, Process, World
from tests.dispatch import project
from tests.lines import whole_lines

SOON = {"rehint": 1.0, "tick": 0.5}  # seconds, so that a test is short; the rules are the same


@dataclass(slots=True)
class Fleet:
    """One broker, one queue, and the workers of one test; `told` is what its dispatchers are told."""

    world: World
    broker: str
    queue: str
    told: dict[str, Any] = field(default_factory=lambda: dict(SOON))

    def dispatch(self, broker: str | None = None) -> CeleryDispatcher:
        """What the world's app submits from now on is hinted."""
        celery = project.make_celery(broker or self.broker)
        return CeleryDispatcher(celery, self.world.app, queue=self.queue, **self.told)

    def start_worker(
        self,
        name: str = "worker",
        *,
        pool: str = "prefork",
        concurrency: int = 2,
        beat: bool = False,
        broker: str | None = None,
    ) -> Process:
        options = [f"--pool={pool}", f"--concurrency={concurrency}", f"-Q{self.queue}"]
        quiet = ["--loglevel=WARNING", "--without-gossip", "--without-mingle"]
        if beat:
            quiet += ["-B", "-s", str(self.world.folder / f"{name}.beat")]
        return self._start(name, ["worker", "-n", f"{name}@%h", *options, *quiet], broker)

    def start_beat(self, broker: str | None = None) -> Process:
        state = str(self.world.folder / "beat")
        return self._start("beat", ["beat", "-s", state, "--loglevel=WARNING"], broker)

    def kill(self, process: Process) -> None:
        """With -9, the whole family at once: nothing is said to anybody."""
        nursery.kill_session(process.popen)

    def close(self) -> None:
        for process in self.world.processes:
            if process.running and "celery" in process.name:
                self.kill(process)

    def environment(self, broker: str | None = None) -> dict[str, str]:
        return {
            **self.world.environment,
            project.BROKER: broker or self.broker,
            project.QUEUE: self.queue,
            project.TOLD: json.dumps(self.told),
        }

    def _start(self, name: str, command: list[str], broker: str | None) -> Process:
        path = self.world.folder / f"{len(self.world.processes)}-{name}.log"
        with path.open("wb") as log:
            popen = nursery.Born(
                [sys.executable, "-m", "celery", "-A", "tests.dispatch.project", *command],
                cwd=ROOT,
                env=os.environ
                | self.environment(broker)
                | {"TMPDIR": str(self.world.folder)},  # killed, it clears up nothing
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        process = Process(f"celery {name}", popen, path)
        self.world.processes.append(process)
        return process


def said(process: Process, what: str) -> list[str]:
    """The lines of its log with these words."""
    return [line for line in whole_lines(Path(process.log)) if what in line]
