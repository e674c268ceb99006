"""What takes how much room, and what retention last made of it. Nothing here counts history."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from retoma.codec import decode
from retoma.db import Transaction
from retoma.engine.query.page import SQL

MOST = 20  # tables
BOUND = 20_000  # pieces of evidence


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass of retention deleted, by what it was."""

    at: datetime
    retired: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """One look, in bytes."""

    database: int
    free: int  # of these: nothing is in them, and what comes next goes there
    tables: Mapping[
        str, int
    ]  # the largest, with their indexes; none where one file has them all
    evidence: int
    pieces: int  # of evidence
    at_least: bool  # there is more evidence than was added up
    last_pass: Pass | None


def disk(tx: Transaction) -> Disk:
    [(_, database, free), *tables] = tx.all(SQL.size_of_database, most=MOST)
    [(pieces, evidence)] = tx.all(SQL.sum_evidence, bound=BOUND)
    return Disk(
        database=int(database),
        free=int(free),
        tables={name: int(size) for name, size, _ in tables},
        evidence=int(evidence),
        pieces=int(pieces),
        at_least=pieces >= BOUND,
        last_pass=_last_pass(tx),
    )


def _last_pass(tx: Transaction) -> Pass | None:
    text = tx.one(SQL.last_pass, into=str)
    if text is None:
        return None
    told = decode(text, dict[str, int | str])
    at = datetime.fromisoformat(str(told.pop("at")))
    return Pass(at, {what: int(n) for what, n in told.items()})
