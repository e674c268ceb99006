"""What happens in a demo: a batch is submitted, a runner is killed at work, others take over."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from retoma.cli import documents_world, embeddings_world, matches_world, quotes_world, world
from retoma.cli.account import Account, account_of
from retoma.cli.ads_world import AdsAccount, AdsWorld, in_words, install
from retoma.cli.board import Board
from retoma.cli.demo_jobs import Order, app, orders, report
from retoma.cli.documents_world import DocumentsWorld
from retoma.cli.embeddings_world import EmbeddingsWorld
from retoma.cli.exits import Exit, Stop
from retoma.cli.matches_world import MatchesWorld
from retoma.cli.processes import RunnerProcess, stop_all
from retoma.cli.quotes_world import QuotesWorld
from retoma.cli.world import World
from retoma.engine import insights
from retoma.engine.batch import Batch, Progress
from retoma.engine.job import Job
from retoma.engine.ports import Clock
from retoma.engine.states import State
from retoma.words import say

LOOK = 0.05  # seconds between two looks at the batch
PATIENCE = 60.0  # seconds: by then something is wrong
ADS_LOOK = 0.25
ADS_PATIENCE = 120.0
KILL_AT = 1 / 3  # of the jobs ended


def world_of(seed: int, jobs: int, pace: float) -> list[Order]:
    return orders(Random(seed), jobs, pace)  # noqa: S311 — a world, not a secret


async def perform(
    place: World,
    wanted: Sequence[Order],
    runners: list[RunnerProcess],
    ads: AdsWorld,
    others: tuple[QuotesWorld, DocumentsWorld, MatchesWorld, EmbeddingsWorld],
    board: Board,
) -> Account:
    """From the submission to the account; `runners` grows by the one that is started."""
    app.url = place.url
    install(app, place.folder)
    quotes_world.install(app, place.folder)
    documents_world.install(app)
    matches_world.install(app)
    embeddings_world.install(app)
    quotes, documents, matches, embeddings = others
    async with app:
        with board:
            show = _Show(place, runners, board)
            async with asyncio.TaskGroup() as group:
                missions = group.create_task(show.scrape(ads))
                lote = group.create_task(quotes.perform(app, board))
                execution = group.create_task(documents.perform(app, board))
                rounds = group.create_task(matches.perform(app, board))
                texts = group.create_task(embeddings.perform(app, board))
                group.create_task(show.go_on(wanted))
            left_badly = await stop_all(runners, world.GRACE * 2)
            left_badly += [badly for each in others for badly in await each.stop()]
            board.say("every job has ended; the runners were told to leave")
            await ads.stop()
        account = await account_of(place, show.batch)
    problems = [f"{name} did not leave in order" for name in left_badly]
    return replace(
        account,
        ads=missions.result(),
        quotes=lote.result(),
        documents=execution.result(),
        matches=rounds.result(),
        embeddings=texts.result(),
        takeover_seconds=show.takeover_seconds,
        seconds=round(board.seconds, 1),
        events=board.events,
        problems=[
            *account.problems,
            *problems,
            *missions.result().problems,
            *lote.result().problems,
            *execution.result().problems,
            *rounds.result().problems,
            *texts.result().problems,
        ],
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

    async def scrape(self, ads: AdsWorld) -> AdsAccount:
        """The missions, from the first program of their world to the last ad in its table."""
        try:
            async with asyncio.timeout(ADS_PATIENCE):
                await ads.start(app)
                up = ads.size
                self._board.say(
                    f"ads: {up.workers} workers, {up.proxies} proxies and a writer are up"
                )
                await ads.begin(app, up.missions)
                began = self._clock.now()
                while not await ads.at_rest(app):
                    self._board.beside = await in_words(app)
                    await self._clock.sleep(ADS_LOOK)
        except TimeoutError:
            raise Stop(
                Exit.FAILED,
                say(
                    "the missions had not ended after {patience:g} s; the logs are in {folder}",
                    patience=ADS_PATIENCE,
                    folder=self._place.folder,
                ),
            ) from None
        self._board.beside = await in_words(app)
        took = round(self._clock.now() - began, 1)
        self._board.say(f"{up.missions} missions have ended, in {took:.1f} s")
        return replace(await ads.account(app), seconds=took)

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
