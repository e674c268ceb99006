"""An application in the demo: the services it needs in a box, runners of its own, and one that is killed over it."""

import asyncio
import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, TypeVar

from retoma.cli.board import Board
from retoma.cli.exits import Exit, Stop
from retoma.cli.fleet import Fleet
from retoma.cli.processes import Listening, RunnerProcess, stop_all
from retoma.cli.world import PRIVATE, World
from retoma.db import Transaction
from retoma.engine import insights
from retoma.engine.batch import Batch
from retoma.engine.ports import Clock
from retoma.engine.states import State
from retoma.library import Retoma
from retoma.words import say

LOOK: Final = 0.1
PATIENCE: Final = 120.0  # seconds: by then something is wrong
REST: Final = 10.0  # seconds for a program to leave
KILL_AT: Final = 1 / 3  # of a batch ended

A = TypeVar("A")  # the account of what became of it


@dataclass(frozen=True, slots=True)
class Left:
    """What a runner that was killed had in its hands, and what of it was paid for and kept."""

    held: int
    kept: int


class Boxed(ABC, Generic[A]):
    """Around one house, in one folder of it: the programs, and what is done with them."""

    name: ClassVar[str]  # of the application and of its box
    kind: ClassVar[str]
    paid_steps: ClassVar[Sequence[str]]
    slots: ClassVar[int]

    def __init__(self, place: World, seed: int, pace: float) -> None:
        self.services: Listening | None = None
        self.runners: list[RunnerProcess] = []
        self._place = place
        self._folder = place.folder / self.name
        self._words: tuple[str, ...] = ("--seed", str(seed), "--pace", str(pace))

    @property
    @abstractmethod
    def log_file(self) -> Path:
        """Where the box writes down who came."""

    @property
    @abstractmethod
    def addresses(self) -> Mapping[str, str]:
        """By which a runner finds the services, as it would find the real ones."""

    @abstractmethod
    async def begin(self, app: Retoma) -> Batch:
        """One more batch, of what nobody has asked about yet."""

    @abstractmethod
    def told(self) -> str:
        """What begins, in a line."""

    @abstractmethod
    async def show(self, app: Retoma, board: Board) -> A:
        """From the first program to the account of what became of it."""

    # — the programs —

    async def start(self) -> None:
        """The services listen when this returns; where they did the last time, for whoever was told
        of their pages then."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        kept = self._folder / "port"
        before = kept.read_text(encoding="utf-8").strip() if kept.exists() else ""
        for port in dict.fromkeys((before or "0", "0")):
            with contextlib.suppress(RuntimeError):  # somebody else listens there now
                self.services = await self._listening(port)
                kept.write_text(self.services.server.partition(":")[2], encoding="utf-8")
                return
        raise Stop(
            Exit.UNAVAILABLE,
            say(
                "the services of the {name} did not come up; see {folder}",
                name=self.name,
                folder=self._folder,
            ),
        )

    async def _listening(self, port: str) -> Listening:
        return await Listening.start(
            *("sandbox", self.name, *self._words, "--port", port, "--log", str(self.log_file)),
            log_file=self._folder / "services.log",
        )

    async def start_runner(self, name: str) -> RunnerProcess:
        """A `retoma runner` of this application and nothing else."""
        runner = await RunnerProcess.start(
            ("--database", self._place.url, "--slots", str(self.slots)),
            name=name,
            environment={
                **self._place.environment,
                "RETOMA_APPLICATIONS": self.name,
                **PRIVATE,
                **self.addresses,
            },
            log_file=self._place.folder / f"{name.replace(' ', '-')}.log",
        )
        self.runners.append(runner)
        return runner

    @property
    def origin(self) -> str:
        assert self.services is not None  # noqa: S101 — they are started first
        return self.services.origin

    def fleet(self, clock: Clock) -> Fleet:
        return Fleet(self.start_runner, clock)

    async def stop(self) -> list[str]:
        """Who left badly."""
        badly = await stop_all(self.runners, REST)
        if self.services is not None:
            await stop_all([self.services], REST)
        return badly

    def kill(self) -> None:
        for each in (*self.runners, *([] if self.services is None else [self.services])):
            each.kill()

    async def perform(self, app: Retoma, board: Board) -> A:
        try:
            async with asyncio.timeout(PATIENCE):
                return await self.show(app, board)
        except TimeoutError:
            raise Stop(
                Exit.FAILED,
                say(
                    "the {name} had not ended after {patience:g} s; the logs are in {folder}",
                    name=self.name,
                    patience=PATIENCE,
                    folder=self._place.folder,
                ),
            ) from None

    async def killed(self, app: Retoma, victim: RunnerProcess) -> Left:
        """-9; what it had in its hands."""
        victim.freeze()  # once it is dead its neighbours take over what it held, at once
        left = await self._left(app, victim)
        victim.kill()
        await victim.ended()
        return left

    async def _left(self, app: Retoma, victim: RunnerProcess) -> Left:
        def look(tx: Transaction) -> Left:
            boots = {each.boot for each in insights.list_runners(tx) if each.pid == victim.pid}
            running = insights.list_jobs(
                tx, kind=self.kind, state=State.RUNNING, limit=insights.PAGE
            )
            held = [job.id for job in running if job.runner in boots]
            steps = [step for job in held for step in insights.job_steps(tx, job)]
            kept = [
                step for step in steps if step.state == "saved" and step.name in self.paid_steps
            ]
            return Left(len(held), len(kept))

        return await (await app.database()).read(look)


class BoxedWorld(Boxed[A]):
    """One whose work is a batch."""

    @abstractmethod
    async def account(self, app: Retoma, batch: Batch, left: Left, seconds: float) -> A: ...

    @abstractmethod
    def summary(self, account: A) -> str:
        """What became of it, in a line."""

    async def show(self, app: Retoma, board: Board) -> A:
        """A batch from its submission to its end; a runner is killed in the middle of it."""
        await self.start()
        victim = await self.start_runner(f"{self.name} 1")
        batch = await self.begin(app)
        began = board.clock.now()
        board.say(f"{self.name}: {self.told()}")
        await self._until(board.clock, batch, KILL_AT)
        left = await self.killed(app, victim)
        board.say(f"{victim.name} killed with kill -9, {left.held} {self.name} in its hands")
        await self.start_runner(f"{self.name} 2")
        await self._until(board.clock, batch, 1)
        took = round(board.clock.now() - began, 1)
        account = await self.account(app, batch, left, took)
        board.say(self.summary(account))
        return account

    async def _until(self, clock: Clock, batch: Batch, share: float) -> None:
        while (await batch.progress()).share < share:
            await clock.sleep(LOOK)


def lines_of(file: Path) -> list[dict[str, Any]]:
    """What a box has written down."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]
