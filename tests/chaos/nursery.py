"""Runners that are born ready: a process that has imported everything, and forks one when asked.

A runner needs a second of CPU to import what it runs; a thousand that are killed need a quarter of an
hour for nothing else. `python -m tests.chaos.nursery MODULE`: a line of JSON for each child, its pid is the
answer, and MODULE has what a child is to `run`.
"""

import ctypes
import importlib
import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from tests import services

GONE = -int(signal.SIGKILL)
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class Child:
    """A process that is not our own child, handled as if it were.

    By a descriptor of the process, not by its number: nobody waits for it but the nursery, so the
    number may be another's as soon as it has ended.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._process: int | None = os.pidfd_open(pid)

    def poll(self, within: int | None = 0) -> int | None:
        """Whether it has ended, in so many milliseconds; None: however long that takes."""
        if self._process is not None:
            look = select.poll()  # its descriptor may be more than select can count to
            look.register(self._process, select.POLLIN)
            if look.poll(within):
                os.close(self._process)
                self._process = None
        return GONE if self._process is None else None

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def send_signal(self, sign: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            if self._process is not None:
                signal.pidfd_send_signal(self._process, sign)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self) -> int:
        self.poll(None)
        return GONE


class Nursery:
    """The process that forks, seen from the test."""

    def __init__(
        self, cwd: Path, environment: dict[str, str], module: str = "tests.chaos.run_runner"
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.nursery", module],
            cwd=cwd,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=services.die_with_parent(),  # noqa: PLW1509  # one C call, no lock
        )

        self._children: list[Child] = []

    def bear(self, knobs: dict[str, Any], log: Path) -> Child:
        asked, answered = (cast("IO[str]", pipe) for pipe in self._pipes())
        asked.write(json.dumps({"knobs": knobs, "log": str(log)}) + "\n")
        asked.flush()
        self._children.append(Child(int(answered.readline())))
        return self._children[-1]

    def close(self) -> None:
        for child in self._children:
            child.kill()
            child.wait()
        self._process.kill()
        self._process.wait()
        for pipe in self._pipes():
            cast("IO[str]", pipe).close()

    def _pipes(self) -> tuple[IO[str] | None, IO[str] | None]:
        return self._process.stdin, self._process.stdout


def serve(module: str) -> None:
    import httpx2  # noqa: F401 — what a child would import

    import retoma.db.postgres
    import retoma.db.sqlite  # noqa: F401

    program = importlib.import_module(module)
    # Nobody waits for our children: they are gone as soon as they have ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        told = json.loads(line)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            grow_up(Path(told["log"]))
            program.run(told["knobs"])
            os._exit(0)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


def grow_up(log: Path) -> None:
    os.setsid()
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)  # also one that is stopped
    nothing = os.open(os.devnull, os.O_RDONLY)
    told = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for ours, standard in ((nothing, 0), (told, 1), (told, 2)):
        os.dup2(ours, standard)


if __name__ == "__main__":
    serve(sys.argv[1])
