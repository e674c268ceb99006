"""Batches, without their counts."""

from dataclasses import dataclass
from datetime import datetime

from retoma.db import Row, Transaction
from retoma.engine.errors import NotFound
from retoma.engine.insights.page import at, checked, sql

GET_BATCH = sql("get_batch")
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
        raise NotFound(f"there is no batch {batch}")
    return _batch(row)


def list_batches(
    tx: Transaction, *, before: int | None = None, limit: int = 50
) -> list[BatchSeen]:
    """Newest first."""
    rows = tx.all(LIST_BATCHES, before=before, limit=checked(limit, "batches"))
    return [_batch(row) for row in rows]


def _batch(row: Row) -> BatchSeen:
    id_, name, kind, created_at = row
    return BatchSeen(id_, name, kind, at(created_at))
