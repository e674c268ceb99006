"""`retoma up`: the world of the demo, kept running; the next one goes on where this one stopped."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Any

from retoma import logs
from retoma.cli import documents_world, embeddings_world, matches_world, quotes_world, world
from retoma.cli.ads_world import AdsSize, AdsWorld, in_words, install
from retoma.cli.board import Board, board_for
from retoma.cli.boxed_world import Boxed
from retoma.cli.demo_jobs import app, orders, report
from retoma.cli.documents_world import DocumentsSize, DocumentsWorld
from retoma.cli.embeddings_world import EmbeddingsSize, EmbeddingsWorld
from retoma.cli.exits import Exit, Stop
from retoma.cli.fleet import Fleet
from retoma.cli.matches_world import MatchesSize, MatchesWorld
from retoma.cli.processes import on_stop
from retoma.cli.quotes_world import QuotesSize, QuotesWorld
from retoma.cli.serve import Server, prepare, sign_in_link
from retoma.cli.world import World
from retoma.engine.batch import Progress
from retoma.engine.ports import Clock
from retoma.engine.states import State
from retoma.manifest import Application
from retoma.words import say, speak

RUNNERS = ("runner 1", "runner 2")
SLOTS = 10
ORDERS = 15  # jobs of a batch
PACE = 0.4  # seconds of a step, about
PAUSE = 3.0  # seconds between two batches
ADS = AdsSize(workers=3, proxies=4, missions=12)
QUOTES = QuotesSize(quotes=40, pace=1.0)
DOCUMENTS = DocumentsSize(documents=30, odd=5, pace=1.0)
MATCHES = MatchesSize(rounds=1, pace=1.0)
TEXTS = EmbeddingsSize(documents=50)
ENOUGH = 100  # waiting jobs: more would only grow the file
LOOK = 0.2


def run(*, seed: int) -> None:
    with world.opened("up", slots=SLOTS, anew=False) as place:
        if not asyncio.run(_up(place, seed)):
            raise Stop(
                Exit.FAILED,
                say("a runner did not leave in order; see {folder}", folder=place.folder),
            )


async def _up(place: World, seed: int) -> bool:
    app.url = place.url
    applications = _install(place)
    ads, boxed = AdsWorld(place.folder, ADS, seed), _boxed(place, seed)
    logs.configure("warning")  # the board has the screen
    board = board_for(quiet=False)
    fleet = Fleet(place.start, board.clock)
    beside = [each.fleet(board.clock) for each in boxed]
    stopping = asyncio.Event()
    async with app, asyncio.TaskGroup() as group:
        server = await _server(place, ads, applications)
        _stop_when_told(board, [fleet, *beside], stopping)
        print(speak("sign in, once, within an hour: {link}", link=await sign_in_link(server)))
        with board:
            board.say(f"runners start; Ctrl-C stops; data in {place.folder}")
            kept = group.create_task(fleet.run(RUNNERS))
            looking = group.create_task(_look(board, board.clock))
            working = [
                group.create_task(_submit_slowly(board, Random(seed), board.clock)),  # noqa: S311 — a world, not a secret
                group.create_task(_scrape(ads, board)),
                *(
                    group.create_task(_batch_after_batch(each, its, board))
                    for each, its in zip(boxed, beside, strict=True)
                ),
            ]
            served = group.create_task(server.run())
            await stopping.wait()
            for each in working:
                each.cancel()
            server.stop()
            await served
            with suppress(asyncio.CancelledError):
                in_order = await kept
            looking.cancel()
            await ads.stop()
            for one in boxed:
                await one.stop()
            board.say("every runner has left; the next `retoma up` goes on from here")
    return in_order


def _install(place: World) -> list[Application]:
    return [
        Application(name="demo", kinds=list(app.kinds)),
        *install(app, place.folder),
        *quotes_world.install(app, place.folder),
        *documents_world.install(app),
        *matches_world.install(app),
        *embeddings_world.install(app),
    ]


def _boxed(place: World, seed: int) -> list[Boxed[Any]]:
    """Those that have their services in a box, and runners of their own."""
    return [
        QuotesWorld(place, QUOTES, seed),
        DocumentsWorld(place, DOCUMENTS, seed),
        MatchesWorld(place, MATCHES, seed),
        EmbeddingsWorld(place, TEXTS, seed),
    ]


def _stop_when_told(board: Board, fleets: Sequence[Fleet], stopping: asyncio.Event) -> None:
    def stop() -> None:
        board.say("stopping: running jobs finish first")
        stopping.set()
        for each in fleets:
            each.stop()

    def kill() -> None:
        for each in fleets:
            each.kill()

    on_stop(stop, at_once=kill)


async def _server(place: World, ads: AdsWorld, applications: Sequence[Application]) -> Server:
    """The API of this world; on a free port, where somebody has the usual one."""
    chosen = ads.settings.model_copy(update={"database_url": place.url})
    try:
        return await prepare(app, chosen, applications)
    except Stop:
        anywhere = chosen.model_copy(update={"serve_port": 0})
        return await prepare(app, anywhere, applications)


async def _submit_slowly(board: Board, rng: Random, clock: Clock) -> None:
    while True:
        if (await app.counts()).get(State.WAITING, 0) < ENOUGH:
            batch = await app.submit_many(report, orders(rng, ORDERS, PACE))
            board.say(f"batch {batch.id}: {batch.submitted} jobs")
        await clock.sleep(PAUSE)


async def _scrape(ads: AdsWorld, board: Board) -> None:
    """Missions for day after day; the programs around them go when we go."""
    await board.clock.sleep(PAUSE)  # the runners first: they are quicker without nine others
    try:
        await ads.start(app)
    except Stop as stop:
        board.say(str(stop))
        return
    board.say(f"ads: {ADS.workers} workers, {ADS.proxies} proxies and a writer are up")
    while True:
        if await ads.at_rest(app):
            await ads.begin(app, ADS.missions)
            board.say(f"ads: {ADS.missions} missions more")
        board.beside = await in_words(app)
        await board.clock.sleep(PAUSE)


async def _batch_after_batch(world: Boxed[Any], runners: Fleet, board: Board) -> None:
    """Once the services it needs are up."""
    await board.clock.sleep(2 * PAUSE)  # the last of all to come
    try:
        await world.start()
    except Stop as stop:
        board.say(str(stop))
        return
    async with asyncio.TaskGroup() as group:
        group.create_task(runners.run((f"{world.name} 1",)))
        while True:
            batch = await world.begin(app)
            board.say(f"{world.name}: batch {batch.id}, {world.told()}")
            while not (await batch.progress()).finished:
                await board.clock.sleep(PAUSE)


async def _look(board: Board, clock: Clock) -> None:
    while True:
        board.look(Progress(await app.counts()))
        await clock.sleep(LOOK)
