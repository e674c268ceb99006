"""Batches, without their counts."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from retoma.db import Transaction, moment
from retoma.engine.query.page import SQL, checked
from retoma.engine.rules.errors import NotFound
from retoma.engine.store import verb
from retoma.words import say

WINDOW = timedelta(minutes=5)  # of a batch's past: what it will do next it did last
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class BatchSeen:
    """A batch, without its counts."""

    id: int
    name: str
    kind: str
    created_at: datetime


def get_batch(tx: Transaction, batch: int) -> BatchSeen:
    found = tx.one(verb.SQL.get_batch, into=BatchSeen, batch=batch)
    if found is None:
        raise NotFound(say("there is no batch {batch}", batch=batch))
    return found


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a batch ends its jobs, and whether somebody paused it."""

    paused: bool
    rate: float  # jobs ended in a second, of late


def batch_pace(tx: Transaction, batch: int) -> Pace:
    row = tx.one(SQL.batch_pace, batch=batch, window=-WINDOW.total_seconds())
    if row is None:
        raise NotFound(say("there is no batch {batch}", batch=batch))
    paused_at, created, at, ended, since = row
    now = moment(at)
    # Over a minute at least, if it is that old: one job ended just now is no pace yet.
    began = max(moment(created), min(now if since is None else moment(since), now - MINUTE))
    return Pace(paused_at is not None, int(ended) / max((now - began).total_seconds(), 1.0))


def list_batches(
    tx: Transaction, *, before: int | None = None, limit: int = 50
) -> list[BatchSeen]:
    """Newest first."""
    limit = checked(limit, "batches")
    return tx.all(SQL.list_batches, into=BatchSeen, before=before, limit=limit)
