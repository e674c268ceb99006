"""What the checker reads: rows of the database as plain values, and one job with all that belongs to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from retoma.engine.checker.effect_ledger import Accepted, Effect
from retoma.engine.rules.events import LEADS_TO, EventType
from retoma.engine.rules.states import State, StepState

NO_DETAILS: Mapping[str, Any] = MappingProxyType({})
Account = tuple[str, str, str]  # provider, model, unit


@dataclass(frozen=True, slots=True)
class Job:
    """A row of jobs."""

    id: int
    kind: str
    batch: int | None
    generation: int
    state: State
    reason: str | None
    epoch: int
    seq: int
    failures: int
    lost: int = 0
    payload: Any = None
    result: Any = None
    fresh_from: int = 1
    turn: int | None = None
    run_at: datetime | None = None
    runner: str | None = None
    ended_at: datetime | None = None


class Event(NamedTuple):
    """A row of events."""

    job: int
    seq: int
    epoch: int | None
    type: EventType
    at: datetime
    actor: str | None = None
    details: Mapping[str, Any] = NO_DETAILS

    @property
    def ends_claim(self) -> bool:
        moves = LEADS_TO[self.type] is not None
        return moves and self.epoch is not None and self.type is not EventType.CLAIMED

    @property
    def step(self) -> str:
        """The step it tells of, with its key."""
        return joined(self.details["step"], self.details.get("key", ""))


@dataclass(frozen=True, slots=True)
class Step:
    """A row of steps."""

    job: int
    name: str
    key: str
    epoch: int
    value: Any
    version: int = 1
    generation: int = 1
    state: StepState = StepState.SAVED
    cost: str | None = None

    @property
    def called(self) -> str:
        return joined(self.name, self.key)


@dataclass(frozen=True, slots=True)
class Case:
    """One job with all that is known of it."""

    job: Job
    events: Sequence[Event]
    steps: Sequence[Step] = ()
    effects: Sequence[Effect] = ()
    accepted: Sequence[Accepted] = ()
    spent: Mapping[Account, int] = field(default_factory=dict)

    def generations(self) -> list[list[Event]]:
        """Its events, those of each generation apart."""
        found: list[list[Event]] = [[]]
        for event in self.events:
            if event.type is EventType.AGAIN:
                found.append([])
            found[-1].append(event)
        return found


def joined(name: str, key: str) -> str:
    """A step as events and the ledger call it."""
    return f"{name}/{key}" if key else name
