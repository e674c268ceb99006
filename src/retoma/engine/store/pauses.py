"""Pauses of applications, kinds and queues: nothing of them is claimed until somebody resumes them.

A claim says how many changes of pauses it has heard of; one that has missed some is given nothing and
hears of them first. What is paused is then simply not asked for. See decision 0057.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from retoma.codec import encode
from retoma.db import Transaction
from retoma.engine.rules.errors import NotFound
from retoma.engine.store.rows import tell
from retoma.engine.store.verb import SQL
from retoma.words import Said, say

TOPIC = "pauses"  # what rings when they change


class Scope(StrEnum):
    """What can be paused, besides a batch and a schedule."""

    APPLICATION = "application"
    KIND = "kind"
    QUEUE = "queue"


SCOPES: Mapping[Scope, Said] = {  # as people call them
    Scope.APPLICATION: say("application"),
    Scope.KIND: say("kind"),
    Scope.QUEUE: say("queue"),
}
KINDS = (Scope.KIND, "kind of application")


class Belongs(NamedTuple):
    """A kind, and where it belongs."""

    kind: str
    application: str
    queue: str

    def named(self, scope: Scope) -> str:
        match scope:
            case Scope.APPLICATION:
                return self.application
            case Scope.KIND:
                return self.kind
            case Scope.QUEUE:
                return self.queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """What is paused, since when, by whom."""

    scope: Scope
    name: str
    since: datetime
    actor: str
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What is paused, for whoever claims: queues, and kinds, whether they or their application are."""

    change: str = "0"  # how often pauses have changed until then
    queues: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    pauses: tuple[tuple[Scope, str], ...] = ()  # as somebody said it

    def holds(self, queue: str, kind: str) -> bool:
        return queue in self.queues or kind in self.kinds


def known(tx: Transaction) -> Known:
    """As it stands now."""
    rows = tx.all(SQL.known_pauses)
    return Known(
        rows[0][0],
        frozenset(name for _, what, name in rows if what == Scope.QUEUE),
        frozenset(name for _, what, name in rows if what in KINDS),
        tuple(sorted((Scope(what), name) for _, what, name in rows if what in list(Scope))),
    )


def pause(
    tx: Transaction, scope: Scope, name: str, why: str | None, *, actor: str
) -> tuple[Pause, bool]:
    """How it is paused now, and whether it went on until now; who paused it first stays."""
    _must_be_known(tx, scope, name)
    new = tx.one(SQL.pause, scope=scope, name=name, actor=actor, why=why) is not None
    if new:
        details = None if why is None else encode({"why": why})
        _changed(tx, f"{scope}.paused", name, actor, details)
    for each in list_pauses(tx):
        if (each.scope, each.name) == (scope, name):
            return each, new
    # It was resumed from under our statements, each of which sees its own time.
    return pause(tx, scope, name, why, actor=actor)


def resume(tx: Transaction, scope: Scope, name: str, *, actor: str) -> bool:
    """Whether it was paused until now."""
    was_paused = tx.one(SQL.resume, scope=scope, name=name) is not None
    if was_paused:
        _changed(tx, f"{scope}.resumed", name, actor)
    else:
        _must_be_known(tx, scope, name)
    return was_paused


def list_pauses(tx: Transaction) -> list[Pause]:
    return tx.all(SQL.list_pauses, into=Pause)


def holding(tx: Transaction, kind: str, queue: str) -> Pause | None:
    """The pause that holds such a job; of several the first."""
    return tx.one(SQL.holding_pause, into=Pause, kind=kind, queue=queue)


def claims_under_way(tx: Transaction) -> frozenset[str]:
    """Transactions that may claim without having seen what is committed now."""
    return frozenset(tx.all(SQL.claims_under_way, into=str))


def belongings(tx: Transaction) -> list[Belongs]:
    return tx.all(SQL.list_kinds, into=Belongs)


def declare(tx: Transaction, kinds: Iterable[Belongs]) -> None:
    """Where these belong, for every process to know: a new kind of a paused application is paused."""
    before = set(belongings(tx))
    new = sorted(set(kinds) - before)
    for each in new:
        tx.run(SQL.declare_kind, name=each.kind, application=each.application, queue=each.queue)
    if new and any(each.scope is Scope.APPLICATION for each in list_pauses(tx)):
        _ring(tx)


def _must_be_known(tx: Transaction, scope: Scope, name: str) -> None:
    names = sorted({each.named(scope) for each in belongings(tx)})
    if name not in names:
        raise NotFound(
            say(
                "there is no {scope} {name!r}; known: {known}",
                scope=SCOPES[scope],
                name=name,
                known=", ".join(names) or "-",
            )
        )


def _changed(
    tx: Transaction, told: str, name: str, actor: str, details: str | None = None
) -> None:
    tell(tx, actor=actor, verb=told, subject=name, details=details)
    _ring(tx)


def _ring(tx: Transaction) -> None:
    tx.run(SQL.change_pauses)
    tx.ring(TOPIC)
