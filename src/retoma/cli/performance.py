"""What happens in a demo: a batch is submitted, a runner is killed at work, others take over."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from retoma.cli import world
from retoma.cli.account import Account, account_of
from retoma.cli.board import Board
from retoma.cli.demo_jobs import Order, app, orders, report
from retoma.cli.exits import Exit, Stop
from retoma.cli.processes import RunnerProcess, stop_all
from retoma.cli.world import World
from retoma.engine import insights
from retoma.engine.batch import Batch, Progress
from retoma.engine.job import Job
from retoma.engine.ports import Clock
from retoma.engine.states import State
from retoma.words import say

LOOK = 0.05  # seconds between two looks at the batch
PATIENCE = 60.0  # seconds: by then something is wrong
KILL_AT = 1 / 3  # of the jobs ended


def world_of(seed: int, jobs: int, pace: float) -> list[Order]:
    return orders(Random(seed), jobs, pace)  # noqa: S311 — a world, not a secret


async def perform(
    place: World, wanted: Sequence[Order], runners: list[RunnerProcess], board: Board
) -> Account:
    """From the submission to the account; `runners` grows by the one that is started."""
    app.url = place.url
    async with app:
        with board:
            show = _Show(place, runners, board)
            await show.go_on(wanted)
            left_badly = await stop_all(runners, world.GRACE * 2)
            board.say("every job has ended; the runners were told to leave")
        account = await account_of(place, show.batch)
    problems = [f"{name} did not leave in order" for name in left_badly]
    return replace(
        account,
        takeover_seconds=show.takeover_seconds,
        seconds=round(board.seconds, 1),
        events=board.events,
        problems=account.problems + problems,
    )


class _Show:
    """One batch, the runners at work on it, and whoever looks on."""

    batch: Batch
    takeover_seconds = 0.0

    def __init__(self, place: World, runners: list[RunnerProcess], board: Board) -> None:
        self._place = place
        self._runners = runners
        self._board = board
        self._clock: Clock = board.clock

    async def go_on(self, wanted: Sequence[Order]) -> None:
        self._board.say(f"{len(self._runners)} runners started, each a process of its own")
        self.batch = await app.submit_many(report, wanted)
        self._board.say(f"{self.batch.submitted} jobs submitted in one transaction")
        try:
            async with asyncio.timeout(PATIENCE):
                await self._until(lambda progress: progress.ended > 0)
                self._board.say("the first job is done")
                await self._until(lambda progress: progress.share >= KILL_AT)
                await self._kill_one()
                await self._until(lambda progress: progress.finished)
        except TimeoutError:
            progress = await self.batch.progress()
            raise Stop(
                Exit.FAILED,
                say(
                    "{n} jobs had not ended after {patience:g} s; the logs are in {folder}",
                    n=progress.total - progress.ended,
                    patience=PATIENCE,
                    folder=self._place.folder,
                ),
            ) from None

    async def _until(self, holds: Callable[[Progress], bool]) -> None:
        while not holds(await self._look()):
            await self._clock.sleep(LOOK)

    async def _look(self) -> Progress:
        progress = await self.batch.progress()
        self._board.look(progress)
        return progress

    async def _kill_one(self) -> None:
        victim = await self._one_at_work()
        victim.kill()
        await victim.ended()
        killed = self._clock.now()
        orphans = await self._held_by(victim)
        self._board.say(f"{victim.name} killed with kill -9, {len(orphans)} jobs in its hands")
        self._runners.append(await self._place.start(f"runner {len(self._runners) + 1}"))
        self._board.say(f"{self._runners[-1].name} started")
        while await _still_orphans(orphans):
            await self._look()
            await self._clock.sleep(LOOK)
        self.takeover_seconds = round(self._clock.now() - killed, 2)
        self._board.say(f"{len(orphans)} jobs taken over in {self.takeover_seconds:.1f} s")

    async def _one_at_work(self) -> RunnerProcess:
        """The last one that holds jobs: on a slow machine not all of them may have begun."""
        while not (await self._look()).finished:
            for runner in reversed(self._runners):
                if await self._held_by(runner):
                    return runner
        raise Stop(Exit.FAILED, say("all was done before a runner could be killed at work"))

    async def _held_by(self, runner: RunnerProcess) -> list[Job]:
        boots = {each.boot for each in await app.runners() if each.pid == runner.pid}
        running = await app.jobs(state=State.RUNNING, batch=self.batch.id, limit=insights.PAGE)
        return [job for job in running if job.runner in boots]


async def _still_orphans(orphans: Sequence[Job]) -> bool:
    """Whether one of them is neither running anew nor ended."""
    for job in orphans:
        now = await app.get(job.id)
        if now.epoch == job.epoch and not now.ended:
            return True
    return False
