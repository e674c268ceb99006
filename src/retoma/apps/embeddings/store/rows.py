"""How rows of this room are asked for and read."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from retoma.db import Row, Statement, moment, statement


def verb(name: str) -> Statement:
    return statement("retoma.apps.embeddings.sql", name)


def named(names: Sequence[str], row: Row) -> dict[str, Any]:
    return dict(zip(names, row, strict=True))


def time_of(at: Any) -> datetime | None:
    """A time, as either database gives it; a view of SQLite's tells it as text."""
    if at is None or isinstance(at, datetime):
        return at
    if isinstance(at, int):
        return moment(at)
    return datetime.fromisoformat(at).replace(tzinfo=UTC)
