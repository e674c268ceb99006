"""Breakers: what guards a service that others need too, so that its outage costs nobody attempts."""

from dataclasses import dataclass
from datetime import datetime

from retoma.db import Transaction
from retoma.engine.rules.errors import NotFound
from retoma.engine.rules.job import Held
from retoma.engine.store.gates import BITE, put_back
from retoma.engine.store.rows import tell
from retoma.engine.store.verb import verb
from retoma.words import say

CLOSE_BREAKER = verb("close_breaker")
COUNT_AGAINST = verb("count_against")
LIST_BREAKERS = verb("list_breakers")
OPEN_BREAKER = verb("open_breaker")
PROBE_BREAKER = verb("probe_breaker")
PUT_BREAKER = verb("put_breaker")
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
    tx.run(PUT_BREAKER, name=name, threshold=threshold, rest=rest)
    tell(tx, actor=actor, verb="breaker.declared", subject=name)


def list_breakers(tx: Transaction) -> list[BreakerSeen]:
    return tx.all(LIST_BREAKERS, into=BreakerSeen)


def may_probe(tx: Transaction, held: Held, name: str) -> bool:
    """Whether this job is the one that tries whether it works again."""
    row = tx.one(PROBE_BREAKER, name=name, job=held.job, epoch=held.epoch)
    return row is not None


def failed(tx: Transaction, held: Held, name: str, reason: str) -> bool:
    """Count it; whether the breaker is open now."""
    state = tx.one(
        COUNT_AGAINST, into=str, name=name, job=held.job, epoch=held.epoch, reason=reason
    )
    if state == "open":
        tell(tx, actor=f"job {held.job}", verb="breaker.opened", subject=f"{name}: {reason}")
    return state in ("open", None)  # None: another job has opened it meanwhile


def worked(tx: Transaction, name: str, *, actor: str) -> None:
    """It works: whoever waited goes on."""
    if tx.one(CLOSE_BREAKER, name=name) is not None:
        tell(tx, actor=actor, verb="breaker.closed", subject=name)
        put_back(tx, {gate(name): BITE})


def close_by_hand(tx: Transaction, name: str, *, actor: str) -> None:
    """Closed already: the same answer again."""
    if all(each.name != name for each in list_breakers(tx)):
        raise NotFound(say("no breaker is called {name!r}", name=name))
    worked(tx, name, actor=actor)


def open_by_hand(tx: Transaction, name: str, reason: str, *, actor: str) -> None:
    if tx.one(OPEN_BREAKER, name=name, reason=reason) is None:
        raise NotFound(say("no breaker is called {name!r}", name=name))
    tell(tx, actor=actor, verb="breaker.opened", subject=f"{name}: {reason}")
