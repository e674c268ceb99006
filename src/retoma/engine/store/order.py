"""What a person does to many jobs at once, wherever they stand: so many ids, each once."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from retoma.db import Transaction
from retoma.engine.rules.states import ENDED, State
from retoma.engine.store.bulk import (
    Picked,
    again_jobs,
    cancel_jobs,
    discard_jobs,
    skip_jobs,
    unpark_jobs,
)
from retoma.engine.store.verb import SQL


class Verb(StrEnum):
    """What can be done to many jobs at once."""

    RETRY = "retry"
    CANCEL = "cancel"
    RESUME = "resume"
    SKIP = "skip"
    DISCARD = "discard"


# From where each verb can move a job. What stands elsewhere is left where it is.
MOVABLE: dict[Verb, frozenset[State]] = {
    Verb.RETRY: ENDED,
    Verb.CANCEL: frozenset({State.WAITING, State.PARKED, State.RUNNING}),
    Verb.RESUME: frozenset({State.PARKED}),
    Verb.SKIP: frozenset({State.WAITING, State.PARKED, State.DEAD}),
    Verb.DISCARD: frozenset({State.DEAD}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One verb, who says it, and since when a job must have stood where it stands."""

    verb: Verb
    actor: str
    since: datetime
    why: str | None = None


class Left(NamedTuple):
    """A job that was not moved, and where it stands; None: it is not there, or moved meanwhile."""

    job: int
    state: State | None


class Ordered(NamedTuple):
    """What one transaction did."""

    moved: int
    left: list[Left]


def order_jobs(tx: Transaction, command: Command, ids: Iterable[int], offset: int) -> Ordered:
    """Move those of them that the verb can move; each with its event, all of them tallied."""
    wanted = sorted(set(ids))
    rows = tx.all(SQL.pick_jobs, jobs=json.dumps(dict.fromkeys(wanted, 1)), since=command.since)
    picked = {Picked(*about): State(state) for *about, state in rows}
    standing = {each.id: state for each, state in picked.items()}
    moved = 0
    for was in sorted(MOVABLE[command.verb]):
        those = [each for each, state in picked.items() if state is was]
        if those:
            moved += _move(tx, command, was, those, offset + moved)
    left = [
        Left(job, standing.get(job))
        for job in wanted
        if standing.get(job) not in MOVABLE[command.verb]
    ]
    return Ordered(moved, left)


def _move(
    tx: Transaction, command: Command, was: State, picked: Sequence[Picked], offset: int
) -> int:
    actor = command.actor
    match command.verb:
        case Verb.RETRY:
            return again_jobs(tx, picked, offset, was=was, actor=actor)
        case Verb.CANCEL:
            return cancel_jobs(tx, picked, offset, was=was, actor=actor)
        case Verb.RESUME:
            return unpark_jobs(tx, picked, offset, actor=actor)
        case Verb.SKIP:
            why = command.why or ""
            return skip_jobs(tx, picked, offset, was=was, why=why, actor=actor)
        case Verb.DISCARD:
            return discard_jobs(tx, picked, why=command.why, actor=actor)
