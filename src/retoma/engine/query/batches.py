"""Batches, without their counts."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from retoma.db import Row, Transaction, moment
from retoma.engine.query.page import at, checked, sql
from retoma.engine.rules.errors import NotFound
from retoma.engine.store.verb import verb
from retoma.words import say

WINDOW = timedelta(minutes=5)  # of a batch's past: what it will do next it did last
MINUTE = timedelta(minutes=1)
BATCH_PACE = sql("batch_pace")
GET_BATCH = verb("get_batch")
LIST_BATCHES = sql("list_batches")


@dataclass(frozen=True, slots=True)
class BatchSeen:
    """A batch, without its counts."""

    id: int
    name: str
    kind: str
    created_at: datetime


def get_batch(tx: Transaction, batch: int) -> BatchSeen:
    row = tx.one(GET_BATCH, batch=batch)
    if row is None:
        raise NotFound(say("there is no batch {batch}", batch=batch))
    return _batch(row)


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a batch ends its jobs, and whether somebody paused it."""

    paused: bool
    rate: float  # jobs ended in a second, of late


def batch_pace(tx: Transaction, batch: int) -> Pace:
    row = tx.one(BATCH_PACE, batch=batch, window=-WINDOW.total_seconds())
    if row is None:
        raise NotFound(say("there is no batch {batch}", batch=batch))
    paused_at, created_at, now, ended, since = row
    # Over a minute at least, if it is that old: one job ended just now is no pace yet.
    began = max(at(created_at), min(moment(since) or at(now), at(now) - MINUTE))
    return Pace(paused_at is not None, int(ended) / max((at(now) - began).total_seconds(), 1.0))


def list_batches(
    tx: Transaction, *, before: int | None = None, limit: int = 50
) -> list[BatchSeen]:
    """Newest first."""
    rows = tx.all(LIST_BATCHES, before=before, limit=checked(limit, "batches"))
    return [_batch(row) for row in rows]


def _batch(row: Row) -> BatchSeen:
    id_, name, kind, created_at = row
    return BatchSeen(id_, name, kind, at(created_at))
