"""Runners kept alive by their parent."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import structlog

from retoma.console.exits import Exit, Stop
from retoma.console.processes import RunnerProcess, in_order
from retoma.engine.ports import Clock
from retoma.words import say

FIRST_PAUSE = 0.5  # seconds before a runner that died is started again; doubles each time
LONGEST_PAUSE = 30.0
SETTLED = 60.0  # a runner that lived this long starts again with the first pause

log = structlog.get_logger("retoma.fleet")


class Fleet:
    """So many runners, kept alive: one that dies is started again, later and later. One that left
    in order was told to, here or by whoever drained it, and is not."""

    def __init__(
        self,
        start: Callable[[str], Awaitable[RunnerProcess]],
        clock: Clock,
    ) -> None:
        self._start = start
        self._clock = clock
        self._stopping = asyncio.Event()
        self.alive: dict[str, RunnerProcess] = {}

    async def run(self, names: Sequence[str]) -> bool:
        """Until stopped; whether every runner left in order."""
        try:
            async with asyncio.TaskGroup() as group:
                kept = [group.create_task(self._keep(name)) for name in names]
        except BaseExceptionGroup as group_of_errors:
            # Not `except*`: what is raised there comes out wrapped, by some Pythons.
            stops = group_of_errors.subgroup(Stop)
            if stops is None:
                raise
            raise stops.exceptions[0] from None
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
            if self._stopping.is_set() or code == Exit.OK:
                return in_order(code)
            if code == Exit.USAGE:
                raise Stop(
                    Exit.USAGE, say("{name} cannot start like this; see above", name=name)
                )
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
