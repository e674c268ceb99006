"""Where a demo plays, and `retoma up`: five applications with their programs, runners kept alive, a board.

The same programs and the same way in as anywhere else: what they need to know is in the environment, a house
is built of it, and applications are taken in by their names.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from retoma import settings
from retoma.apps.ads.demo import AdsSize, AdsWorld
from retoma.apps.documents.demo import DocumentsSize, DocumentsWorld
from retoma.apps.embeddings.demo import EmbeddingsSize, EmbeddingsWorld
from retoma.apps.matches.demo import MatchesSize, MatchesWorld
from retoma.apps.quotes.demo import QuotesSize, QuotesWorld
from retoma.bootstrap import build_retoma, install_applications
from retoma.console.fleet import Fleet
from retoma.console.processes import RunnerProcess, Started, stop_all
from retoma.db import Transaction
from retoma.demo.board import Bar, Board
from retoma.demo.boxed_world import LOOK, BoxedWorld
from retoma.demo.world import World
from retoma.engine import query
from retoma.library import Retoma
from retoma.manifest import Application
from retoma.settings import Settings
from retoma.words import say, tell

RUNNERS: Final = ("runner 1", "runner 2")
REST: Final = 10.0  # seconds for a program to leave
ALONE: Final = 3.0  # seconds that the others wait for the first job of the first world, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large the five are."""

    ads: AdsSize
    quotes: QuotesSize
    documents: DocumentsSize
    matches: MatchesSize
    embeddings: EmbeddingsSize

    def worlds(self, place: World, seed: int) -> list[BoxedWorld]:
        return [
            AdsWorld(place, self.ads, seed),
            QuotesWorld(place, self.quotes, seed),
            DocumentsWorld(place, self.documents, seed),
            MatchesWorld(place, self.matches, seed),
            EmbeddingsWorld(place, self.embeddings, seed),
        ]


class Stage:
    """Open when `opened` gives it; closed behind whoever leaves."""

    app: Retoma
    settings: Settings
    applications: list[Application]

    def __init__(self, place: World, worlds: Sequence[BoxedWorld], board: Board) -> None:
        self.place = place
        self.worlds = [each for each in worlds if each.lacks() is None]
        self.board = board
        self.fleet = Fleet(self._start_runner, board.clock)
        self._kept: asyncio.Task[bool] | None = None
        self._left_out = [each for each in worlds if each.lacks() is not None]
        self._entered = asyncio.Event()  # the first of the worlds

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """The house is open and its first runner boots; for the worlds see `enter`."""
        try:
            self._settle()
            self._kept = asyncio.create_task(self.fleet.run(RUNNERS))
            async with self._house():
                try:
                    yield
                except BaseException:
                    # Before the app closes: its writes would wait for a runner that is frozen while
                    # it holds the write lock.
                    self.kill()
                    raise
            await stop_all(self._programs_of_all(), REST)
        finally:
            self.kill()
            await asyncio.gather(*(each.ended() for each in self._everybody()))

    def _settle(self) -> None:
        """Say who is where, before anybody is."""
        for each in self._left_out:
            self.board.tell(
                say("{name} is left out: it needs {what}", name=each.name, what=each.lacks())
            )
        told = {"RETOMA_APPLICATIONS": ",".join(each.name for each in self.worlds)}
        for each in self.worlds:
            each.settle()
            told |= each.addresses
        os.environ.update(self.place.environment | told)

    async def _start_runner(self, name: str) -> RunnerProcess:
        if name != RUNNERS[0]:
            await self._entered.wait()
        return await self.place.start(name)

    async def enter(self, begun: Callable[[BoxedWorld], Awaitable[None]]) -> None:
        """All programs listen, and the house knows what it must; `begun` is called with each world then.

        The last one enters alone, and has the machine to itself: something is seen at once. The others come
        while it works. Somebody else looks on.
        """
        *others, first = self.worlds
        await self._enter(first, begun)
        with suppress(TimeoutError):
            async with asyncio.timeout(ALONE):
                await self.until(lambda: self.board.share > 0)
        self._entered.set()
        async with asyncio.TaskGroup() as group:
            for each in others:
                group.create_task(self._enter(each, begun))
        n = sum(len(each.programs) for each in self.worlds)
        self.board.tell(
            say("{n} programs listen: sites, models, proxies, workers, a writer", n=n)
        )

    async def _enter(
        self, one: BoxedWorld, begun: Callable[[BoxedWorld], Awaitable[None]]
    ) -> None:
        await one.start()
        await one.introduce(self.app)
        await begun(one)

    @asynccontextmanager
    async def _house(self) -> AsyncIterator[None]:
        self.settings = settings.read()
        self.app = build_retoma(self.settings)
        self.applications = install_applications(self.app, self.settings)
        async with self.app:
            yield

    def kinds_of(self, name: str) -> list[str]:
        return [kind.name for kind in self.app.kinds if kind.application == name]

    # — looking on —

    async def look(self) -> dict[str, Bar]:
        if self._kept is not None and self._kept.done():
            self._kept.result()  # runners that cannot start: said at once

        def bars(tx: Transaction) -> dict[str, Bar]:
            counts = query.count_kinds(tx)
            return {each.name: each.stands(tx, counts) for each in self.worlds}

        found = await (await self.app.database()).read(bars)
        titles = self.titles
        self.board.look({titles[name]: bar for name, bar in found.items()})
        return found

    @property
    def titles(self) -> dict[str, str]:
        return {each.name: tell(each.application.title) for each in self.worlds}

    async def until(self, holds: Callable[[], bool]) -> None:
        """Somebody else looks on."""
        while not holds():
            await self.board.clock.sleep(LOOK)

    # — the end —

    async def stop_runners(self) -> bool:
        """They finish what they have; whether all left in order."""
        self.fleet.stop()
        self._entered.set()  # nobody is waited for any more
        return self._kept is None or await self._kept

    def kill(self) -> None:
        if self._kept is not None:
            self._kept.cancel()
        for each in self._everybody():
            each.kill()

    def _everybody(self) -> list[Started]:
        return [*self.fleet.alive.values(), *self._programs_of_all()]

    def _programs_of_all(self) -> list[Started]:
        return [program for each in self.worlds for program in each.programs.values()]
