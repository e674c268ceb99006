"""The processes of the command line: runners started and told to stop, and signals heard.

A child holds the reading end of a pipe as its standard input. When its parent is gone, however it
went, the pipe ends and the child drains: nothing of ours is left behind. Imports
nothing of the engine: the demo starts its runners first and reads the rest while they boot.
"""

import asyncio
import gc
import os
import re
import signal
import socket
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from retoma.console.exits import Exit

ORIGIN = re.compile(r"https?://[^\s]+")
# Objects between two garbage collections: a thousand jobs at once make more than the usual 700 in a moment,
# nearly none of them in cycles, and collecting took a fifth of a runner's time.
GC_THRESHOLDS = (50_000, 20, 100)
# Seconds the interpreter stays with one thread: at the usual five milliseconds the threads of the database, and
# the heartbeat, wait for the handlers at every statement.
SWITCH_INTERVAL = 0.0002


def on_stop(told: Callable[[], None], at_once: Callable[[], None] | None = None) -> None:
    """Call `told` at the first SIGTERM or Ctrl-C; a second Ctrl-C leaves there and then."""
    asked = False

    def stop(number: int) -> None:
        nonlocal asked
        if not asked:
            asked = True
            told()
        elif number == signal.SIGINT:
            if at_once is not None:
                at_once()
            os._exit(Exit.INTERRUPTED)

    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop, each)


@contextmanager
def tune_interpreter() -> Iterator[None]:
    """Collect garbage less often and switch threads faster, until the block ends.

    For processes of our own alone: a library does not retune the program that uses it.
    """
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)


def freeze_loaded_objects() -> None:
    """Leave out of each look for garbage what was loaded to begin with: code, routes, templates.

    A look through all of it held the loop of a server for 130 ms, whenever requests made many objects.
    """
    gc.collect()
    gc.freeze()


def leave_anyway(after: float) -> None:
    """Everything is settled: threads that a story left behind do not keep this process."""

    def leave() -> None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(Exit.OK)

    timer = threading.Timer(after, leave)
    timer.daemon = True
    timer.start()


def when_parent_ends(told: Callable[[], None]) -> None:
    """Call `told` once the pipe from our parent ends."""
    loop = asyncio.get_running_loop()
    pipe = sys.stdin.fileno()

    def readable() -> None:
        with suppress(OSError):
            if os.read(pipe, 1024):
                return
        loop.remove_reader(pipe)
        told()

    loop.add_reader(pipe, readable)


@dataclass(frozen=True, slots=True)
class Started:
    """A program of ours that we started, in a session of its own: a Ctrl-C on the terminal is ours
    to pass on."""

    name: str
    process: Process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.returncode is None

    def kill(self) -> None:
        """kill -9, its steps' children too. Once it has ended its number may be another's."""
        if not self.running:
            return
        with suppress(ProcessLookupError):
            if sys.platform == "linux":
                # Its children die with it; what tracks their semaphores must live on, to remove them.
                os.kill(self.pid, signal.SIGKILL)
            else:
                os.killpg(self.pid, signal.SIGKILL)

    def freeze(self) -> None:
        """Nothing is done any more, and nobody takes it for dead yet."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on as if nothing had been."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        return await self.process.wait()


@dataclass(frozen=True, slots=True)
class RunnerProcess(Started):
    """One `retoma runner`."""

    @classmethod
    async def start(
        cls,
        arguments: Sequence[str],
        *,
        name: str,
        environment: Mapping[str, str] | None = None,
        log_file: Path | None = None,
    ) -> "RunnerProcess":
        words = ("runner", "--name", name, *arguments)
        return cls(name, await _launched(words, environment, log_file))


@dataclass(frozen=True, slots=True)
class Listening(Started):
    """A program that says where it listens: a site or a proxy of the sandbox, a service."""

    origin: str

    @classmethod
    async def start(
        cls,
        *words: str,
        environment: Mapping[str, str] | None = None,
        log_file: Path | None = None,
    ) -> "Listening":
        """Ready to answer when this returns; RuntimeError where it ends first."""
        process = await _launched(words, environment, log_file, out=PIPE)
        name = " ".join(words[:2])
        try:
            found = await _listens(process)
        except asyncio.CancelledError:
            Started(name, process).kill()
            await process.wait()
            raise
        if found is None:
            raise RuntimeError(f"{name} ended with {await process.wait()}")
        return cls(name, process, found)

    @property
    def server(self) -> str:
        """Its host and port."""
        return self.origin.removeprefix("http://")


class Held:
    """A port that a program of ours will have: the wanted one, or a free one where another has that.

    Bound and not listening: given to nobody who asks for a free one, and refused to nobody who asks for it.
    """

    def __init__(self, host: str, wanted: int) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, wanted))
        except OSError:
            self._socket.bind((host, 0))
        self.port: int = self._socket.getsockname()[1]

    def close(self) -> None:
        self._socket.close()


async def _listens(process: Process) -> str | None:
    """Where it says that it listens; None: it has ended."""
    assert process.stdout is not None  # noqa: S101 — it is a pipe
    while line := await process.stdout.readline():
        if (found := ORIGIN.search(line.decode())) is not None:
            return found[0]
    return None


async def _launched(
    words: Sequence[str],
    environment: Mapping[str, str] | None,
    log_file: Path | None,
    out: int | None = None,
) -> Process:
    log = None if log_file is None else _opened(log_file)
    try:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "retoma", *words, "--leave-with-parent"),
            stdin=PIPE,
            stdout=log if out is None else out,
            stderr=log,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    finally:
        if log is not None:
            os.close(log)


async def stop_all(runners: Sequence[Started], seconds: float) -> list[str]:
    """Drain those that still run; whoever is not gone in time is killed. Who left badly."""
    told = [runner for runner in runners if runner.running]
    for runner in told:
        runner.stop()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(runner.ended() for runner in told))
    for runner in told:
        if runner.running:
            runner.kill()
    return [runner.name for runner in told if not in_order(await runner.ended())]


def in_order(code: int) -> bool:
    """Whether a runner that was told to stop left as it should."""
    # Killed by our SIGTERM: it was too young to listen, and had claimed nothing.
    return code in (Exit.OK, -signal.SIGTERM)


def _opened(log_file: Path) -> int:
    return os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
