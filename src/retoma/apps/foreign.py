"""What stands in somebody else's table, read as we keep it."""

from datetime import UTC, date, datetime
from typing import Any


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
