"""The processes of the command line: runners started, kept alive, told to stop, and signals heard.

A child holds the reading end of a pipe as its standard input. When its parent is gone, however it
went, the pipe ends and the child drains: nothing of ours is left behind.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from retoma.cli.exits import Exit, Stop
from retoma.engine.ports import Clock

FIRST_PAUSE = 0.5  # seconds before a runner that died is started again; doubles each time
LONGEST_PAUSE = 30.0
SETTLED = 60.0  # a runner that lived this long starts again with the first pause

log = structlog.get_logger("retoma.processes")


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
class RunnerProcess:
    """One `retoma runner` that we started."""

    name: str
    process: Process

    @classmethod
    async def start(
        cls,
        arguments: Sequence[str],
        *,
        name: str,
        environment: Mapping[str, str] | None = None,
        log_file: Path | None = None,
    ) -> "RunnerProcess":
        """In a session of its own: a Ctrl-C on the terminal is ours to pass on."""
        command = (sys.executable, "-m", "retoma", "runner", "--name", name)
        out = None if log_file is None else _opened(log_file)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                *("--leave-with-parent", *arguments),
                stdin=PIPE,
                stdout=out,
                stderr=out,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        finally:
            if out is not None:
                os.close(out)
        return cls(name, process)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.returncode is None

    def kill(self) -> None:
        """kill -9, the whole session: its steps' children too."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        return await self.process.wait()


class Fleet:
    """So many runners, kept alive: one that dies is started again, later and later."""

    def __init__(
        self,
        start: Callable[[str], Awaitable[RunnerProcess]],
        clock: Clock,
        *,
        again: bool = True,
    ) -> None:
        self._start = start
        self._clock = clock
        self._again = again  # also after an exit that was in order
        self._stopping = asyncio.Event()
        self.alive: dict[str, RunnerProcess] = {}

    async def run(self, names: Sequence[str]) -> bool:
        """Until stopped; whether every runner left in order."""
        try:
            async with asyncio.TaskGroup() as group:
                kept = [group.create_task(self._keep(name)) for name in names]
        except* Stop as stopped:
            raise stopped.exceptions[0] from None
        finally:
            self.kill()
        return all(each.result() for each in kept)

    def stop(self) -> None:
        self._stopping.set()
        for runner in self.alive.values():
            runner.stop()

    def kill(self) -> None:
        for runner in self.alive.values():
            runner.kill()

    async def _keep(self, name: str) -> bool:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            began = self._clock.now()
            code = await self._lived(name)
            if self._stopping.is_set() or (code == Exit.OK and not self._again):
                return in_order(code)
            if code == Exit.USAGE:
                raise Stop(Exit.USAGE, f"{name} cannot start like this; see above")
            if self._clock.now() - began > SETTLED:
                pause = FIRST_PAUSE
            log.warning("runner.died", name=name, exit=code, again_in=pause)
            await self._wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
        return True

    async def _lived(self, name: str) -> int:
        runner = self.alive[name] = await self._start(name)
        if self._stopping.is_set():
            runner.stop()
        try:
            return await runner.ended()
        except asyncio.CancelledError:
            runner.stop()
            await runner.ended()
            raise
        finally:
            if not runner.running:
                del self.alive[name]

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()


async def stop_all(runners: Sequence[RunnerProcess], seconds: float) -> list[str]:
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
