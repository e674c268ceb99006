"""Runners that are born ready: a process that has imported everything, and forks one when asked.

A runner needs a second of CPU to import what it runs; a thousand that are killed need a quarter of an
hour for nothing else. `python -m tests.chaos.nursery`: a line of JSON for each child, its pid is the answer.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, cast

from tests import services

GONE = -int(signal.SIGKILL)


class Child:
    """A process that is not our own child, handled as if it were."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._gone = False

    def poll(self) -> int | None:
        """Its pid is not given to another before somebody has asked and found it gone."""
        if not self._gone:
            try:
                os.kill(self.pid, 0)
            except ProcessLookupError:
                self._gone = True
        return GONE if self._gone else None

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def send_signal(self, sign: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, sign)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self) -> int:
        while self.poll() is None:
            os.sched_yield()
        return GONE


class Nursery:
    """The process that forks, seen from the test."""

    def __init__(self, cwd: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.nursery"],
            cwd=cwd,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=services.die_with_parent(),  # noqa: PLW1509  # one C call, no lock
        )

    def bear(self, knobs: dict[str, Any], log: Path) -> Child:
        asked, answered = (cast("IO[str]", pipe) for pipe in self._pipes())
        asked.write(json.dumps({"knobs": knobs, "log": str(log)}) + "\n")
        asked.flush()
        return Child(int(answered.readline()))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in self._pipes():
            cast("IO[str]", pipe).close()

    def _pipes(self) -> tuple[IO[str] | None, IO[str] | None]:
        return self._process.stdin, self._process.stdout


def serve() -> None:
    import httpx2  # noqa: F401 — what a child would import

    import retoma.db.postgres
    import retoma.db.sqlite  # noqa: F401
    from tests.chaos import run_runner

    # Nobody waits for our children: they are gone as soon as they have ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        told = json.loads(line)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            grow_up(Path(told["log"]))
            run_runner.run(told["knobs"])
            os._exit(0)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


def grow_up(log: Path) -> None:
    os.setsid()
    if die := services.die_with_parent():
        die()
    nothing = os.open(os.devnull, os.O_RDONLY)
    told = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for ours, standard in ((nothing, 0), (told, 1), (told, 2)):
        os.dup2(ours, standard)


if __name__ == "__main__":
    serve()
