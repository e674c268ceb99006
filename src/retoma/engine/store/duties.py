"""Duties: work for the whole house that one boot at a time may do, each time in a term of its own."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from retoma.db import Transaction, seconds_until
from retoma.engine.store.verb import SQL

OF_APPLICATIONS = "application."  # how the names of their leader tasks begin


@dataclass(frozen=True, slots=True)
class Term:
    """One boot's right to do one duty, until another takes it with the next number."""

    duty: str
    boot: str
    number: int


@dataclass(frozen=True, slots=True)
class Taken:
    """A duty this boot holds, and in how many seconds it wants to be done; None: nothing waits."""

    term: Term
    due: float | None


def declare_duties(tx: Transaction, names: Iterable[str]) -> None:
    """Have a row for each leader task of an application; those of the engine are there."""
    for name in names:
        if name.startswith(OF_APPLICATIONS):
            tx.run(SQL.declare_duty, name=name)


def take_duties(tx: Transaction, boot: str, names: Iterable[str]) -> list[Taken]:
    """Take those of the named that nobody alive holds; all that this boot holds then."""
    known = json.dumps(list(names))
    return [
        Taken(Term(name, boot, number), seconds_until(due, now))
        for name, number, due, now in tx.all(SQL.take_duties, boot=boot, names=known)
    ]


def holds_duty(tx: Transaction, term: Term) -> bool:
    """The fence: asked first in every transaction that is done under a duty."""
    row = tx.one(SQL.holds_duty, name=term.duty, boot=term.boot, term=term.number)
    return row is not None


def lay_down_duty(tx: Transaction, term: Term) -> None:
    """It is done; whoever comes next may have it."""
    tx.run(SQL.lay_down_duty, name=term.duty, boot=term.boot, term=term.number)


def try_write(tx: Transaction, name: str, filler: bytes) -> None:
    """Meet whatever a write of so much would meet; nothing of it stays. `name`: nobody else's."""
    tx.run(SQL.try_write, name=name, filler=filler)
    tx.run(SQL.forget_try, name=name)
