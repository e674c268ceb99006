"""What stands in somebody else's database, read as we keep it."""

from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlsplit

from retoma.db.rows import microseconds


def named(url: str) -> str:
    """Which database that is, whoever asks it."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return parts.path
    return f"{parts.hostname or ''}:{parts.port or 5432}{parts.path}"


def instant(value: Any) -> datetime | None:
    """A time, as either database may hold it; without a zone it is UTC. None: it is none."""
    if value is None or value == "":
        return None
    if isinstance(value, int | float):
        return datetime.fromtimestamp(float(value), UTC)
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def as_kept(dialect: str, at: datetime | None) -> str | int | None:
    """A time inside of JSON, as our own database keeps it."""
    if at is None:
        return None
    return at.isoformat() if dialect == "postgres" else microseconds(at)
