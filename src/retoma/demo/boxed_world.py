"""One application in a world: the programs it needs, what is asked of it, and the truth about it.

All five have this shape: `settle` (where its programs will listen), `addresses` (by which runners find them),
`start` (they do), `introduce` (what the house must know), `begin` (one more batch), `stands` (how far it is),
`misfortune` (what befalls it half way, beside its `faults`), `mend` (what a person does about it), `witness` (what
came of it, for the account).
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Final

from retoma.console.exits import Exit, Stop
from retoma.console.processes import Held, Listening
from retoma.db import Transaction
from retoma.demo.account import Witness
from retoma.demo.board import Bar, Board
from retoma.demo.world import PRIVATE, World
from retoma.engine.rules.states import State
from retoma.library import Retoma
from retoma.manifest import Application
from retoma.outbound import Outbound, Policy
from retoma.words import Said, say

WHO: Final = "demo"
LOOK: Final = 0.1  # seconds between two looks at something that is waited for
HERE: Final = "127.0.0.1"
BOX: Final = "services"  # of those that have all of them in one program
Counts = Mapping[str, Mapping[State, int]]  # of jobs, by their kind


class BoxedWorld(ABC):
    """Around one house, in one folder of it."""

    application: ClassVar[Application]
    kind: ClassVar[str]  # of the jobs that are counted
    faults: ClassVar[Sequence[tuple[str, Mapping[str, Any]]]] = ()  # (service, what goes wrong)

    def __init__(self, place: World, seed: int, pace: float = 0.0) -> None:
        self.programs: dict[str, Listening] = {}
        self.begun = 0  # things that were submitted, since this began
        self._place = place
        self._seed = seed
        self._pace = pace
        self._folder = place.folder / self.name
        self._ports: dict[str, int] = {}
        self._held: Held | None = None

    @property
    def name(self) -> str:
        return self.application.name

    def lacks(self) -> Said | None:
        """What must be installed for it, where it is not."""
        return None

    # — its programs —

    def settle(self) -> None:
        """Its address is known before it is there: runners are told of it, and boot meanwhile."""
        self._remember_ports()
        self._held = Held(HERE, self._ports.get(BOX, 0))
        self._ports[BOX] = self._held.port

    async def start(self) -> None:
        """All of them listen when this returns; where they did the last time, if nobody else does now."""
        await self._launch(BOX, "sandbox", self.name, *self._words())
        if self._held is not None:
            self._held.close()

    def _words(self) -> tuple[str, ...]:
        """What its box is told."""
        told = ("--seed", str(self._seed), "--pace", str(self._pace))
        return (*told, "--log", str(self.log_file))

    @property
    def log_file(self) -> Path:
        """Where the box writes down who came."""
        return self._folder / "log.jsonl"

    @property
    def server(self) -> str:
        """Host and port of the box."""
        return f"{HERE}:{self._ports[BOX]}"

    @property
    def origin(self) -> str:
        return f"http://{self.server}"

    @property
    @abstractmethod
    def addresses(self) -> Mapping[str, str]:
        """By which a runner finds the services, as it would find the real ones."""

    async def _launch(
        self, name: str, *words: str, environment: Mapping[str, str] | None = None
    ) -> Listening:
        with suppress(RuntimeError):  # it did not come up
            self.programs[name] = await Listening.start(
                *(*words, "--port", str(self._ports.get(name, 0))),
                environment={**PRIVATE, **(environment or {})},
                log_file=self._folder / f"{name}.log",
            )
            self._keep_port(name)
            return self.programs[name]
        raise Stop(
            Exit.UNAVAILABLE,
            say(
                "{program} of the {name} did not come up; its log is in {folder}",
                program=name,
                name=self.name,
                folder=self._folder,
            ),
        )

    def _remember_ports(self) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        file = self._folder / "ports.json"
        if file.exists():
            self._ports = json.loads(file.read_text(encoding="utf-8"))

    def _keep_port(self, name: str) -> None:
        self._ports[name] = int(self.programs[name].server.rpartition(":")[2])
        file = self._folder / "ports.json"
        file.write_text(json.dumps(self._ports), encoding="utf-8")

    async def arm(self) -> None:
        """What goes wrong from now on, a few times."""
        for service, fault in self.faults:
            await self._post(f"{service}/_sandbox/faults", fault)

    async def _post(self, path: str, told: Mapping[str, Any]) -> None:
        """A wish of ours to the box: for trouble, or for another world."""
        async with Outbound(private=frozenset({HERE})) as out:
            policy = Policy.toward("the sandbox", self.origin)
            await out.post(policy, f"{self.origin}{path}", json=dict(told))

    # — what it does —

    async def introduce(self, app: Retoma) -> None:  # noqa: B027 — most need nothing
        """Tell the house what it must know before anything begins."""

    @abstractmethod
    async def begin(self, app: Retoma) -> None:
        """One more batch, of what nobody has asked for yet."""

    @abstractmethod
    def told(self) -> Said:
        """What begins, in a line."""

    def stands(self, tx: Transaction, counts: Counts) -> Bar:  # noqa: ARG002 — ads asks it
        return Bar(self.begun, counts.get(self.kind, {}))

    async def misfortune(self, app: Retoma, board: Board) -> None:  # noqa: B027 — nor this
        """What befalls it half way."""

    async def mend(self, app: Retoma, board: Board) -> None:  # noqa: B027 — nor that
        """What a person does when all has ended."""

    @abstractmethod
    async def witness(self, app: Retoma, recovered: int) -> Witness:
        """What came of it, by the database and by its services. `recovered`: jobs that were taken over."""


def lines_of(file: Path) -> list[dict[str, Any]]:
    """What a box has written down."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]
