"""Nouns of the matches application: a job for a round, a task for a match, and what may end one.

The words are those of the document. A page that cannot be read says what failed, so that it is evidence.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from retoma.engine.rules.errors import Action, Code, ErrorClass, Permanent, table
from retoma.engine.rules.states import State

DISCOVERY: Final = "matches.discovery"  # kind: which matches a round has
MATCH: Final = "matches.match"  # kind: one match of it
REFRESH: Final = "matches.refresh"  # kind: one stored match, asked for again
COMPLETE: Final = (
    "matches.complete"  # kind: whoever waits for a round is told that it is complete
)
ATTEMPTS: Final = 3
INDEX: Final = re.compile(r"\[[0-9]+\]")
MOST_PROBLEMS: Final = 20  # of one page that are told
LONGEST: Final = 200  # characters of a problem


class TaskStatus(StrEnum):
    """Of a task, as the document says it, and NOT_YET: it is looked at again at a stated time."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    NOT_YET = "NOT_YET"


STATUS: Final[Mapping[State, TaskStatus]] = {
    State.WAITING: TaskStatus.PENDING,  # or NOT_YET, where its last look said so
    State.PARKED: TaskStatus.PENDING,
    State.RUNNING: TaskStatus.RUNNING,
    State.DONE: TaskStatus.DONE,
    State.DEAD: TaskStatus.FAILED,
    State.SKIPPED: TaskStatus.SKIPPED,
    State.CANCELED: TaskStatus.SKIPPED,
}


class MatchStatus(StrEnum):
    SCHEDULED = "scheduled"
    LIVE = "live"
    FINISHED = "finished"
    POSTPONED = "postponed"


class Side(StrEnum):
    HOME = "home"
    AWAY = "away"

    @property
    def other(self) -> "Side":
        return Side.AWAY if self is Side.HOME else Side.HOME


class EventKind(StrEnum):
    """In the order in which events of one minute are told."""

    GOAL = "goal"
    OWN_GOAL = "own_goal"
    PENALTY = "penalty"
    YELLOW = "yellow"
    RED = "red"
    SUBSTITUTION = "substitution"


GOALS: Final = frozenset({EventKind.GOAL, EventKind.OWN_GOAL, EventKind.PENALTY})


CARDS: Final = frozenset({EventKind.YELLOW, EventKind.RED})


class Verdict(StrEnum):
    """What a failure means for a task: the document's two classes, and the one it lacks (H-43)."""

    TRANSIENT = "transient"  # again, with backoff
    NOT_YET = "not_yet"  # at a stated time
    FATAL = "fatal"  # for a person, with evidence


# What may end an attempt of a task, and what follows.
CODES: Final = table(
    Code("LAYOUT_CHANGED", ErrorClass.DATA, Action.BURY, None, "o leiaute do site mudou"),
    Code("SCHEMA_INVALID", ErrorClass.DATA, Action.BURY, None, "dados inválidos na página"),
    Code(
        "ROUND_SHORT", ErrorClass.DATA, Action.BURY, None, "faltam partidas na página da rodada"
    ),
    # Of a task that was done once: what was stored is no longer there.
    Code(
        "OTHER_MATCH", ErrorClass.DATA, Action.BURY, None, "o que foi gravado é outra partida"
    ),
    Code(
        "DELETED", ErrorClass.DATA, Action.BURY, None, "uma pessoa excluiu o que estava gravado"
    ),
    Code("NOT_PUBLISHED", ErrorClass.TRANSIENT, Action.RETRY, None, "ainda não publicado"),
    Code("NOT_FINISHED", ErrorClass.TRANSIENT, Action.RETRY, None, "a partida não terminou"),
    Code("SITE_REFUSED", ErrorClass.BLOCKED, Action.BURY, None, "o site recusou o pedido"),
    Code(
        "NO_PROXY",
        ErrorClass.CONFIG,
        Action.RETRY,
        None,
        "nenhum proxy pode ser usado: veja matches.proxies",
    ),
    Code("OFF_SITE", ErrorClass.BLOCKED, Action.BURY, None, "o endereço não é do site"),
)


# — pages that cannot be read —


class PageRefused(Permanent):
    """A page of which nothing may be stored. No number of tries will help; another parser may."""

    def evidence(self) -> dict[str, Any]:
        """What failed, in plain values."""
        return {"code": self.code}


class LayoutChanged(PageRefused):
    """What must be on a page is not there: it is drawn in a way this parser does not know."""

    def __init__(self, *, selector: str, layout: str) -> None:
        super().__init__(f"layout {layout}: nothing is at {selector}", code="LAYOUT_CHANGED")
        self.selector = selector
        self.layout = layout

    def __reduce__(self) -> tuple[Any, ...]:
        return _layout_changed, (self.selector, self.layout)

    def evidence(self) -> dict[str, Any]:
        return {**super().evidence(), "selector": self.selector, "layout": self.layout}


@dataclass(frozen=True, slots=True)
class Problem:
    """One value that no rule allows: where it is (`events[3].minute`), and why."""

    path: str
    why: str


class SchemaInvalid(PageRefused):
    """The page was read, and what it says breaks the schema. `path` and `why` are of the first."""

    named = "SCHEMA_INVALID"

    def __init__(self, *, problems: Sequence[Problem]) -> None:
        self.problems = tuple(
            Problem(each.path[:LONGEST], each.why[:LONGEST])
            for each in problems[:MOST_PROBLEMS]
        )
        self.path, self.why = self.problems[0].path, self.problems[0].why
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{self.path}: {self.why}{more}", code=self.named)

    def __reduce__(self) -> tuple[Any, ...]:
        return _schema_invalid, (type(self), self.problems)

    def evidence(self) -> dict[str, Any]:
        return {
            **super().evidence(),
            "path": self.path,
            "why": self.why,
            "field": INDEX.sub("[]", self.path),  # without the places: alike are told together
            "problems": [{"path": each.path, "why": each.why} for each in self.problems],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Of which match a page must be; what is None is not asked."""

    season: int
    round: int
    key: str
    kickoff: datetime | None = None


class RoundShort(SchemaInvalid):
    """The page of a round lists fewer matches than the round has."""

    named = "ROUND_SHORT"


def _layout_changed(selector: str, layout: str) -> LayoutChanged:
    return LayoutChanged(selector=selector, layout=layout)


def _schema_invalid(of: type[SchemaInvalid], problems: Sequence[Problem]) -> SchemaInvalid:
    return of(problems=problems)
