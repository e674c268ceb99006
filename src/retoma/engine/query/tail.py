"""What has happened since a moment: every event and every line of the audit log, without a gap.

A moment is a cursor. On PostgreSQL it *is* the snapshot, so a transaction that stays open holds up
nobody: what it commits comes in the poll after. On SQLite, which has one writer, it is the last row.
A poll goes from one cursor to the next, in slices; within it a job's events are in their order.
"""

import re
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from retoma.db import Json, Transaction
from retoma.db.rows import read_rows
from retoma.engine.query.page import SQL

SLICE = 2_000  # lines of one kind that are read together
FAR = 100_000  # events; who has missed more is quicker to look at how things stand now

ROWS = re.compile(r"(\d{1,18})\.(\d{1,18})\.(\d{1,9}):(\d{1,18})", re.ASCII)
SNAPSHOT = re.compile(r"\d{1,20}:\d{1,20}:(?:\d{1,20}(?:,\d{1,20})*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Told:
    """One event of a job, with what a reader needs to know whether it is for them."""

    job: int
    seq: int
    epoch: int | None
    type: str  # an EventType, or what a newer retoma writes
    at: datetime
    actor: str | None
    details: Json
    kind: str | None  # None: the job has been retired since
    batch: int | None


@dataclass(frozen=True, slots=True)
class Noted:
    """One line of the audit log."""

    id: int
    at: datetime
    actor: str | None
    verb: str
    subject: str
    details: Json


class Place(NamedTuple):
    """How far a poll has come."""

    event: tuple[int, int]  # on SQLite its row
    line: int


BEGINNING = Place((0, 0), 0)


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a poll. `next` is where the following part begins; None: this was the last."""

    events: list[Told]
    lines: list[Noted]
    next: Place | None


def head(tx: Transaction) -> str:
    """The cursor of now."""
    [database] = tx.all(SQL.incarnation, into=str)
    [spot] = tx.all(SQL.tail_head, into=str)
    return f"{database}/{spot}"


def of_one_life(cursor: str, other: str) -> bool:
    """Whether both are moments of the same incarnation: between two there is nothing to tell."""
    return cursor.partition("/")[0] == other.partition("/")[0]


def knows(tx: Transaction, cursor: str, far: int = FAR) -> bool:
    """Whether one may go on from this cursor: it is ours, and not too many events ago. It came
    from a stranger and may be anything."""
    [database] = tx.all(SQL.incarnation, into=object)
    ours, _, spot = cursor.partition("/")
    if ours != str(database):
        return False
    if tx.dialect == "postgres":
        return (
            bool(SNAPSHOT.fullmatch(spot)) and _in_order(spot) and _asked(tx, old=spot, far=far)
        )
    found = ROWS.fullmatch(spot)
    if found is None:
        return False
    row, job, seq, _ = map(int, found.groups())
    return _asked(tx, row=row, job=job, seq=seq, far=far)


def between(
    tx: Transaction, old: str, new: str, after: Place = BEGINNING, most: int = SLICE
) -> Slice:
    """What came after one cursor and not after the other."""
    if tx.dialect == "postgres":
        bounds = {"old": old.partition("/")[2], "new": new.partition("/")[2]}
        job, seq = after.event
        told = tx.all(SQL.tail_events, **bounds, job=job, seq=seq, most=most)
        last = told[-1][:2] if told else after.event
        noted = tx.all(SQL.tail_audit, **bounds, after=after.line, most=most)
    else:
        (row, line), (end, last_line) = _rows(old), _rows(new)
        told = tx.all(SQL.tail_events, old=max(row, after.event[0]), new=end, most=most)
        last = (told[-1][-1], 0) if told else after.event
        noted = tx.all(SQL.tail_audit, old=line, new=last_line, after=after.line, most=most)
    more = len(told) == most or len(noted) == most
    place = Place(last, noted[-1][0] if noted else after.line)
    events = read_rows(SQL.tail_events, Told, [row[: len(fields(Told))] for row in told])
    return Slice(events, read_rows(SQL.tail_audit, Noted, noted), place if more else None)


def _asked(tx: Transaction, **where: Any) -> bool:
    return tx.one(SQL.tail_knows, **where) is not None


def _in_order(snapshot: str) -> bool:
    """Whether PostgreSQL would read it: xmin ≤ each that was open < xmax, in their order."""
    least, most, others = snapshot.split(":")
    numbers = [int(each) for each in others.split(",") if each]
    steps = [int(least), *numbers, int(most)]
    rising = all(a < b for a, b in pairwise(numbers))
    return steps == sorted(steps) and rising and int(least) > 0 and int(most) < 2**63


def _rows(cursor: str) -> tuple[int, int]:
    row, _, line = cursor.partition("/")[2].partition(":")
    return int(row.partition(".")[0]), int(line)
