"""What a person does to a batch: a bite of its jobs at a time, each bite a transaction.

A bite is picked by id and locked where rows can be locked; a row that somebody else holds is passed
over and met in a later pass. Every move is compare and set, and writes its event and its tally.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from retoma.codec import encode
from retoma.db import Transaction
from retoma.engine.rules.events import EventType
from retoma.engine.rules.states import State
from retoma.engine.store.rows import append_event, tell
from retoma.engine.store.verb import SQL

BULK = 1_000  # jobs in one bite: a claim never waits longer for the writer than this takes

# These have an index of their own; the others lie between the first and the last of their batch.
STOPPED = frozenset({State.PARKED, State.SKIPPED, State.DEAD, State.CANCELED})


class Picked(NamedTuple):
    """A job about to be moved, as it stands."""

    id: int
    code: str | None
    queue: str
    kind: str
    batch: int | None


@dataclass(frozen=True, slots=True)
class Which:
    """The jobs of a batch that one verb is about."""

    batch: int
    was: State
    since: datetime  # who has moved later than this is left alone
    codes: Sequence[str] | None = None
    all_seen: bool = False  # leave out waiting jobs with a step that nobody has seen end

    def parameters(self) -> dict[str, Any]:
        codes = None if self.codes is None else _keys(self.codes)
        found = {"batch": self.batch, "was": self.was, "since": self.since, "codes": codes}
        return found if self.was in STOPPED else found | {"all_seen": int(self.all_seen)}


class Bite(NamedTuple):
    """What one transaction did: how many it moved, and after which id the next one begins."""

    moved: int
    after: int
    last: bool


Move = Callable[[Transaction, Sequence[Picked], int], int]


def move_bite(
    tx: Transaction, which: Which, move: Move, *, after: int, offset: int, actor: str, told: str
) -> Bite:
    """Move the next jobs of a batch, and tell the audit log how many."""
    statement = SQL.pick_stopped if which.was in STOPPED else SQL.pick_others
    picked = tx.all(statement, into=Picked, after=after, bite=BULK, **which.parameters())
    if not picked:
        return Bite(0, after, last=True)
    moved = move(tx, picked, offset)
    details = encode({"jobs": moved})
    tell(tx, actor=actor, verb=told, subject=str(which.batch), details=details)
    return Bite(moved, picked[-1].id, last=len(picked) < BULK)


def any_left(tx: Transaction, which: Which) -> bool:
    """Whether a pass has missed some: somebody else held their rows."""
    statement = SQL.left_stopped if which.was in STOPPED else SQL.left_others
    return tx.one(statement, **which.parameters()) is not None


def any_open_in(tx: Transaction, batch: int) -> bool:
    """Whether a job of it is open and nobody has asked for its end, in one look."""
    return tx.one(SQL.left_open, batch=batch) is not None


def again_jobs(
    tx: Transaction,
    picked: Sequence[Picked],
    offset: int,
    *,
    was: State,
    actor: str,
    fresh: bool = False,
) -> int:
    """The next generation of each, in the queue as if submitted now."""
    places = _places(picked, offset)
    ids = tx.all(SQL.again_jobs, into=int, jobs=places, was=was, fresh=int(fresh))
    moved = _told(tx, picked, ids, was, State.WAITING, EventType.AGAIN, actor)
    _ring(tx, moved)
    return len(moved)


def unpark_jobs(tx: Transaction, picked: Sequence[Picked], offset: int, *, actor: str) -> int:
    ids = tx.all(SQL.unpark_jobs, into=int, jobs=_places(picked, offset))
    moved = _told(tx, picked, ids, State.PARKED, State.WAITING, EventType.UNPARKED, actor)
    _ring(tx, moved)
    return len(moved)


def cancel_jobs(
    tx: Transaction, picked: Sequence[Picked], _: int, *, was: State, actor: str
) -> int:
    """Canceled at once where nobody holds them; else their runners are asked, and rung."""
    if was is State.RUNNING:
        return _request_cancels(tx, picked, actor)
    ids = tx.all(SQL.cancel_jobs, into=int, jobs=_places(picked), was=was)
    canceled = len(_told(tx, picked, ids, was, State.CANCELED, EventType.CANCELED, actor))
    stopping = (
        stop_remote(tx, each.id, actor=actor) for each in picked if each.id not in {*ids}
    )
    return canceled + sum(stopping)


def stop_remote(tx: Transaction, job: int, *, actor: str) -> bool:
    """A job that waits for remote work is taken up once more, to have that stopped."""
    row = tx.one(SQL.stop_remote, job=job)
    if row is None:
        return False
    seq, queue = row
    append_event(tx, job, seq, EventType.CANCEL_REQUESTED, actor, None)
    tx.ring(queue)
    return True


def skip_jobs(
    tx: Transaction,
    picked: Sequence[Picked],
    offset: int,
    *,
    was: State,
    why: str,
    actor: str,
) -> int:
    """Ended without being done. What is dead is opened again first: an end is left no other way.

    A waiting job with a step that nobody saw end stays as it is: its next attempt finds out, or asks a person.
    """
    anyway = int(was is not State.WAITING)
    if was is State.DEAD:
        again_jobs(tx, picked, offset, was=was, actor=actor)
        was = State.WAITING
    ids = tx.all(SQL.skip_jobs, into=int, jobs=_places(picked), was=was, anyway=anyway)
    details = encode({"why": why})
    return len(
        _told(tx, picked, ids, was, State.SKIPPED, EventType.SKIPPED, actor, details=details)
    )


def _request_cancels(tx: Transaction, picked: Sequence[Picked], actor: str) -> int:
    rows = tx.all(SQL.request_cancels, jobs=_places(picked))
    asked = _keys(str(job) for job, _ in rows)
    tx.run(
        SQL.tell_moves, jobs=asked, type=EventType.CANCEL_REQUESTED, actor=actor, details=None
    )
    for runner in {runner for _, runner in rows}:
        tx.ring(f"cancel:{runner}")
    return len(rows)


def discard_jobs(
    tx: Transaction, picked: Sequence[Picked], *, why: str | None, actor: str
) -> int:
    """Dead letters put away: off the list, still dead. No move, so nothing is tallied."""
    gone = dict.fromkeys(tx.all(SQL.discard_jobs, into=int, jobs=_places(picked)), 1)
    told = {"type": EventType.DISCARDED, "actor": actor}
    details = None if why is None else encode({"why": why})
    tx.run(SQL.tell_moves, jobs=json.dumps(gone), details=details, **told)
    return len(gone)


def _told(
    tx: Transaction,
    picked: Sequence[Picked],
    ids: Sequence[int],
    was: State,
    to: State,
    event: EventType,
    actor: str,
    *,
    details: str | None = None,
) -> list[Picked]:
    """Those that did move, each with its event, all of them tallied."""
    those = {*ids}
    moved = [each for each in picked if each.id in those]
    tx.run(SQL.tell_moves, jobs=_places(moved), type=event, actor=actor, details=details)
    dead = State.DEAD in (was, to)
    alike = Counter((each.batch, each.kind, each.code if dead else None) for each in moved)
    for (batch, kind, code), n in alike.items():
        tx.run(SQL.tally_move, batch=batch, kind=kind, was=was, to=to, code=code, n=n)
    return moved


def _ring(tx: Transaction, moved: Iterable[Picked]) -> None:
    for queue in {each.queue for each in moved}:
        tx.ring(queue)


def _places(picked: Sequence[Picked], offset: int = 0) -> str:
    """An object of job to place: both databases read the keys of an object the same way."""
    return json.dumps({each.id: offset + place for place, each in enumerate(picked, 1)})


def _keys(names: Iterable[str]) -> str:
    return json.dumps(dict.fromkeys(names, 1))
