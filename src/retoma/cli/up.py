"""`retoma up`: the world of the demo, kept running; the next one goes on where this one stopped."""

import asyncio
from typing import Final

from retoma import logs
from retoma.apps.ads.demo import AdsSize
from retoma.apps.documents.demo import DocumentsSize
from retoma.apps.embeddings.demo import EmbeddingsSize
from retoma.apps.matches.demo import MatchesSize
from retoma.apps.quotes.demo import QuotesSize
from retoma.cli.serve import Server, prepare, sign_in_link
from retoma.cli.stage import Size, Stage
from retoma.console.exits import Exit, Stop
from retoma.console.processes import on_stop
from retoma.demo import world
from retoma.demo.board import board_for
from retoma.demo.boxed_world import BoxedWorld
from retoma.words import say

SLOTS: Final = 20  # of each runner
PAUSE: Final = 20.0  # seconds from the beginning of a batch to that of the next, at least
LOOK: Final = 0.5
SIZE: Final = Size(
    ads=AdsSize(workers=3, proxies=4, missions=12),
    quotes=QuotesSize(quotes=40, pace=1.0),
    documents=DocumentsSize(documents=30, odd=5, pace=1.0),
    matches=MatchesSize(rounds=1, pace=1.0),
    embeddings=EmbeddingsSize(documents=50, pace=1.0),
)


def run(*, seed: int) -> None:
    logs.configure("error")  # the board has the screen; each program has a log of its own
    with world.opened("up", slots=SLOTS, anew=False) as place:
        stage = Stage(place, SIZE.worlds(place, seed), board_for(quiet=False))
        if not asyncio.run(_up(stage)):
            raise Stop(
                Exit.FAILED,
                say("a runner did not leave in order; see {folder}", folder=place.folder),
            )


async def _up(stage: Stage) -> bool:
    """Until told to stop; whether every runner left in order."""
    board, stopping = stage.board, asyncio.Event()
    with board:
        async with stage.opened():
            on_stop(stopping.set, at_once=stage.kill)  # before, there is nothing to finish
            server = await _server(stage)
            board.tell(
                say("sign in, once, within an hour: {link}", link=await sign_in_link(server))
            )
            board.tell(say("Ctrl-C stops; all of it is in {folder}", folder=stage.place.folder))
            served = asyncio.create_task(server.run())
            working = asyncio.create_task(_batch_after_batch(stage))
            ended, _ = await asyncio.wait(
                [asyncio.create_task(stopping.wait()), served, working],
                return_when=asyncio.FIRST_COMPLETED,
            )
            for each in ended:
                each.result()  # whoever failed says so
            board.tell(say("stopping: running jobs finish first"))
            working.cancel()
            server.stop()
            await served
            in_order = await stage.stop_runners()
        board.tell(say("every runner has left; the next `retoma up` goes on from here"))
    return in_order


async def _server(stage: Stage) -> Server:
    """The API of this world; on a free port, where somebody has the usual one."""
    try:
        return await prepare(stage.app, stage.settings, stage.applications)
    except Stop:
        anywhere = stage.settings.model_copy(update={"serve_port": 0})
        return await prepare(stage.app, anywhere, stage.applications)


async def _batch_after_batch(stage: Stage) -> None:
    """Each application has its next when its last has ended."""
    await _tell_what_goes_on(stage)
    async with asyncio.TaskGroup() as group:

        async def begun(one: BoxedWorld) -> None:
            group.create_task(_again_and_again(stage, one))

        group.create_task(_look_on(stage))
        await stage.enter(begun)


async def _look_on(stage: Stage) -> None:
    while True:
        await stage.look()
        await stage.board.clock.sleep(LOOK)


async def _tell_what_goes_on(stage: Stage) -> None:
    for name, bar in (await stage.look()).items():
        if bar.total:
            open_ = bar.total - bar.ended
            stage.board.tell(
                say("{name}: {n} of {total} go on", name=name, n=open_, total=bar.total)
            )


async def _again_and_again(stage: Stage, one: BoxedWorld) -> None:
    title = stage.titles[one.name]
    while True:
        await stage.until(lambda: stage.board.bars[title].finished)
        await one.begin(stage.app)
        stage.board.tell(one.told())
        await stage.board.clock.sleep(PAUSE)
