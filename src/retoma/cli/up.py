"""`retoma up`: the world of the demo, kept running; the next one goes on where this one stopped."""

import asyncio
from contextlib import suppress
from random import Random

from retoma import logs, settings
from retoma.cli import world
from retoma.cli.board import Board, board_for
from retoma.cli.demo_jobs import app, orders, report
from retoma.cli.exits import Exit, Stop
from retoma.cli.fleet import Fleet
from retoma.cli.processes import on_stop
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
    logs.configure("warning")  # the board has the screen
    chance = Random(seed)  # noqa: S311 — a world, not a secret
    board = board_for(quiet=False)
    clock = board.clock
    fleet = Fleet(place.start, clock)
    stopping = asyncio.Event()

    def stop() -> None:
        board.say("stopping: running jobs finish first")
        stopping.set()
        fleet.stop()

    async with app, asyncio.TaskGroup() as group:
        server = await _server(place)
        on_stop(stop, at_once=fleet.kill)
        print(speak("sign in, once, within an hour: {link}", link=await sign_in_link(server)))
        with board:
            board.say(f"runners start; Ctrl-C stops; data in {place.folder}")
            kept = group.create_task(fleet.run(RUNNERS))
            others = [
                group.create_task(_submit_slowly(board, chance, clock)),
                group.create_task(_look(board, clock)),
            ]
            served = group.create_task(server.run())
            await stopping.wait()
            others[0].cancel()
            server.stop()
            await served
            with suppress(asyncio.CancelledError):
                in_order = await kept
            others[1].cancel()
            board.say("every runner has left; the next `retoma up` goes on from here")
    return in_order


async def _server(place: World) -> Server:
    """The API of this world; on a free port, where somebody has the usual one."""
    applications = [Application(name="demo", kinds=list(app.kinds))]
    chosen = settings.read(database_url=place.url)
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


async def _look(board: Board, clock: Clock) -> None:
    while True:
        board.look(Progress(await app.counts()))
        await clock.sleep(LOOK)
