"""Breakers: what guards a service that others need too, so that its outage costs nobody attempts."""

from dataclasses import dataclass
from datetime import datetime

from retoma.db import Transaction
from retoma.engine.rules.errors import NotFound
from retoma.engine.rules.job import Held
from retoma.engine.store.gates import BITE, put_back
from retoma.engine.store.rows import tell
from retoma.engine.store.verb import SQL
from retoma.words import say

GATE = "breaker:"


@dataclass(frozen=True, slots=True)
class BreakerSeen:
    """One breaker as it stands."""

    name: str
    state: str
    failures: int
    threshold: int
    rest: float
    reason: str | None
    since: datetime | None
    probe_at: datetime | None
    due: bool  # open, and rested


def gate(name: str) -> str:
    return f"{GATE}{name}"


def put_breaker(tx: Transaction, name: str, threshold: int, rest: float, *, actor: str) -> None:
    tx.run(SQL.put_breaker, name=name, threshold=threshold, rest=rest)
    tell(tx, actor=actor, verb="breaker.declared", subject=name)


def list_breakers(tx: Transaction) -> list[BreakerSeen]:
    return tx.all(SQL.list_breakers, into=BreakerSeen)


def may_probe(tx: Transaction, held: Held, name: str) -> bool:
    """Whether this job is the one that tries whether it works again."""
    row = tx.one(SQL.probe_breaker, name=name, job=held.job, epoch=held.epoch)
    return row is not None


def failed(tx: Transaction, held: Held, name: str, reason: str) -> bool:
    """Count it; whether the breaker is open now."""
    state = tx.one(
        SQL.count_against, into=str, name=name, job=held.job, epoch=held.epoch, reason=reason
    )
    if state == "open":
        tell(tx, actor=f"job {held.job}", verb="breaker.opened", subject=f"{name}: {reason}")
    return state in ("open", None)  # None: another job has opened it meanwhile


def worked(tx: Transaction, name: str, *, actor: str) -> None:
    """It works: whoever waited goes on."""
    if tx.one(SQL.close_breaker, name=name) is not None:
        tell(tx, actor=actor, verb="breaker.closed", subject=name)
        put_back(tx, {gate(name): BITE})


def close_by_hand(tx: Transaction, name: str, *, actor: str) -> None:
    """Closed already: the same answer again."""
    if all(each.name != name for each in list_breakers(tx)):
        raise NotFound(say("no breaker is called {name!r}", name=name))
    worked(tx, name, actor=actor)


def open_by_hand(tx: Transaction, name: str, reason: str, *, actor: str) -> None:
    if tx.one(SQL.open_breaker, name=name, reason=reason) is None:
        raise NotFound(say("no breaker is called {name!r}", name=name))
    tell(tx, actor=actor, verb="breaker.opened", subject=f"{name}: {reason}")
