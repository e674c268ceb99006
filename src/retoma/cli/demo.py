"""`retoma demo`: five applications at work on this machine; a runner is killed, another freezes, a service dies; all of it is accounted for."""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import asdict
from typing import Any, Final

from retoma import logs
from retoma.apps.ads.demo import AdsSize
from retoma.apps.documents.demo import DocumentsSize
from retoma.apps.embeddings.demo import EmbeddingsSize
from retoma.apps.matches.demo import MatchesSize
from retoma.apps.quotes.demo import QuotesSize
from retoma.cli.stage import RUNNERS, Size, Stage
from retoma.console.exits import Exit, Stop
from retoma.console.kit import print_json
from retoma.console.processes import RunnerProcess
from retoma.demo import account, world
from retoma.demo.account import Account, print_account
from retoma.demo.board import Bar, Board, board_for
from retoma.demo.boxed_world import LOOK, BoxedWorld
from retoma.demo.world import World
from retoma.engine import query
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import State
from retoma.library import Retoma
from retoma.words import say

SLOTS: Final = 24  # of each runner
PATIENCE: Final = 240.0  # seconds: by then something is wrong
MOST_TOLD: Final = 10  # problems in the line at the end; --json has them all
KILL_AT: Final = 1 / 3  # of everything ended
FREEZE_AT: Final = 1 / 2
LEASE: Final = 6.0  # seconds: so long a runner may be frozen until its jobs are another's
IN_THE_ACT: Final = 1.0  # seconds that a write of ours may take while somebody is frozen
NORMAL: Final = Size(
    ads=AdsSize(workers=3, proxies=4, missions=12),
    quotes=QuotesSize(quotes=200, pace=0.1),
    documents=DocumentsSize(documents=300, odd=10, pace=0.1),
    matches=MatchesSize(rounds=3, pace=0.3),
    embeddings=EmbeddingsSize(documents=200, pace=0.3),
)
FAST: Final = Size(
    ads=AdsSize(workers=1, proxies=1, missions=3),
    quotes=QuotesSize(quotes=24, pace=0.05),
    documents=DocumentsSize(documents=12, odd=1, pace=0.05),
    matches=MatchesSize(rounds=1, pace=0.05),
    embeddings=EmbeddingsSize(documents=24, pace=0.05),
)


def run(*, fast: bool, as_json: bool, seed: int) -> None:
    logs.configure("error")  # the board has the screen
    with world.opened("demo", slots=SLOTS, anew=True, lease=LEASE) as place:
        size, board = FAST if fast else NORMAL, board_for(quiet=as_json)
        stage = Stage(place, size.worlds(place, seed), board)
        told = asyncio.run(_in_time(_Demo(stage).play(), place))
    if as_json:
        print_json({"ok": not told.problems, **asdict(told), "total": asdict(told.total)})
    else:
        print_account(told, stage.titles)
    if told.problems:
        raise Stop(
            Exit.FAILED,
            say(
                "the demo broke a promise: {problems}",
                problems="; ".join(told.problems[:MOST_TOLD]),
            ),
        )


async def _in_time(play: Coroutine[Any, Any, Account], place: World) -> Account:
    try:
        async with asyncio.timeout(PATIENCE):
            return await play
    except TimeoutError:
        raise Stop(
            Exit.FAILED,
            say(
                "not all had ended after {patience:g} s; the logs are in {folder}",
                patience=PATIENCE,
                folder=place.folder,
            ),
        ) from None


class _Demo:
    """One performance."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._board: Board = stage.board
        self._takeover = 0.0  # seconds
        self._all_begun = False
        self._over = False

    async def play(self) -> Account:
        """From the first program to the account."""
        with self._board:
            async with self._stage.opened():
                await self._live_through_it()
                for each in self._stage.worlds:
                    await each.mend(self._stage.app, self._board)
                bars = await self._stage.look()
                in_order = await self._stage.stop_runners()
                self._board.tell(say("all has ended; the runners were told to leave"))
                return await self._account(bars, in_order)

    async def _live_through_it(self) -> None:
        """Until everything has ended, whatever happens meanwhile."""
        async with asyncio.TaskGroup() as group:

            async def begin(one: BoxedWorld) -> None:
                await one.arm()
                await one.begin(self._stage.app)
                self._board.tell(one.told())
                group.create_task(one.misfortune(self._stage.app, self._board))

            group.create_task(self._look_on())
            group.create_task(self._strike())
            await self._stage.enter(begin)
            self._all_begun = True

    async def _look_on(self) -> None:
        dead: set[str] = set()
        begun = False
        while not await self._is_over():
            if not begun and self._board.share > 0:
                begun = True
                self._board.tell(say("the first job is done"))
            await self._tell_of_dead(dead)
            await self._board.clock.sleep(LOOK)
        self._over = True

    async def _is_over(self) -> bool:
        all_begun = self._all_begun  # by the time of the look, not after it
        bars = await self._stage.look()
        return all_begun and all(bar.finished for bar in bars.values())

    async def _tell_of_dead(self, known: set[str]) -> None:
        """Each reason once, when it is first met."""
        codes = await (await self._stage.app.database()).read(query.count_codes)
        for code in codes.keys() - known:
            known.add(code)
            self._board.tell(say("the first dead letter for this reason: {code}", code=code))

    # — a runner is killed, another freezes —

    async def _strike(self) -> None:
        """Once both are there: somebody must be left to take over."""
        fleet, board = self._stage.fleet, self._board
        await self._stage.until(lambda: len(fleet.alive) == len(RUNNERS))
        await self._stage.until(lambda: board.share >= KILL_AT)
        await self._lose_a_runner()
        await self._stage.until(lambda: board.share >= FREEZE_AT)
        await self._freeze_a_runner()

    async def _lose_a_runner(self) -> None:
        board = self._board
        found = await self._one_frozen_at_work()
        if found is None:
            raise Stop(Exit.FAILED, say("all was done before a runner could be killed at work"))
        victim, orphans = found
        victim.kill()
        killed = board.clock.now()
        await victim.ended()
        n = len(orphans)
        board.tell(
            say("{name} killed with kill -9, {n} jobs in its hands", name=victim.name, n=n)
        )
        await self._taken_over(orphans)
        self._takeover = round(board.clock.now() - killed, 1)
        board.tell(
            say(
                "{name} killed · {n} jobs taken over in {seconds:g} s",
                name=victim.name,
                n=n,
                seconds=self._takeover,
            )
        )

    async def _freeze_a_runner(self) -> None:
        """It wakes when its jobs are another's, and does not know. Nothing, where all is done by then."""
        board = self._board
        found = await self._one_frozen_at_work()
        if found is None:
            return
        sleeper, held = found
        board.tell(say("{name} froze, {n} jobs in its hands", name=sleeper.name, n=len(held)))
        began, before = board.clock.now(), await self._refused()
        await self._taken_over(held)
        slept = round(board.clock.now() - began, 1)
        boots = await self._boots_of(sleeper)
        sleeper.thaw()
        while sleeper.running and boots == await self._boots_of(sleeper):
            await board.clock.sleep(LOOK)
        board.tell(
            say(
                "{name} woke after {seconds:g} s and let go of what others have by now;"
                " {n} late writes refused",
                name=sleeper.name,
                seconds=slept,
                n=await self._refused() - before,
            )
        )

    async def _one_frozen_at_work(self) -> tuple[RunnerProcess, list[Job]] | None:
        """The last one that holds jobs, frozen over them; None where all is done."""
        while not self._over:
            # A copy: meanwhile the fleet starts again whoever was killed.
            for runner in reversed([*self._stage.fleet.alive.values()]):
                runner.freeze()
                if await self._can_write(runner) and (held := await self._held_by(runner)):
                    return runner, held
                runner.thaw()
            await self._board.clock.sleep(LOOK)
        return None

    async def _can_write(self, frozen: RunnerProcess) -> bool:
        """Whether it was not stopped in the act of writing: then everybody would wait for it."""
        asked = asyncio.ensure_future(self._stage.app.write(lambda _: None))
        done, _ = await asyncio.wait({asked}, timeout=IN_THE_ACT)
        if not done:
            frozen.thaw()
        await asked
        return bool(done)

    async def _held_by(self, runner: RunnerProcess) -> list[Job]:
        boots = await self._boots_of(runner)
        running = await self._stage.app.jobs(state=State.RUNNING, limit=query.PAGE)
        return [job for job in running if job.runner in boots]

    async def _boots_of(self, runner: RunnerProcess) -> set[str]:
        return {
            each.boot for each in await self._stage.app.runners.list() if each.pid == runner.pid
        }

    async def _taken_over(self, orphans: list[Job]) -> None:
        while orphans := [each for each in orphans if await _is_orphan(self._stage.app, each)]:
            await self._board.clock.sleep(LOOK)

    async def _refused(self) -> int:
        return await (await self._stage.app.database()).read(query.refused_writes)

    # — the account —

    async def _account(self, bars: Mapping[str, Bar], in_order: bool) -> Account:
        stage, board = self._stage, self._board
        seen = await (await stage.app.database()).read(account.seen)
        rows, problems = {}, account.of_lives(seen.lives)
        for each in stage.worlds:
            kinds, bar = stage.kinds_of(each.name), bars[each.name]
            witness = await each.witness(stage.app, account.recovered_of(seen, kinds))
            row = rows[each.name] = account.row_of(seen, kinds, bar, witness)
            problems += account.of_things(each.name, witness)
            problems += account.of_numbers(each.name, row, bar, witness)
        if not in_order:
            problems.append("a runner did not leave in order")
        return Account(
            applications=rows,
            seconds=round(board.seconds, 1),
            takeover_seconds=self._takeover,
            events=board.events,
            problems=problems,
        )


async def _is_orphan(app: Retoma, job: Job) -> bool:
    """Neither running anew nor ended."""
    now = await app.get(job.id)
    return now.epoch == job.epoch and not now.ended
