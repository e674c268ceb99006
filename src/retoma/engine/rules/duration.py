"""Lengths of time and instants as people give them, checked: seconds, and datetimes in UTC."""

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from retoma.engine.rules.errors import BadInput
from retoma.words import say

LONGEST: Final = (
    36_525 * 86_400.0
)  # seconds: a hundred years; what is longer is a slip of the pen
EARLIEST: Final = 1970  # the year
SHOWN: Final = 60  # characters of what was given, in an error
UNITS: Final = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
# Largest unit first and each at most once: "30m1h" is a slip of the pen, not a length of time.
WRITTEN: Final = re.compile(
    "".join(rf"(?:(?P<{unit}>[0-9]+(?:\.[0-9]+)?){unit})?" for unit in UNITS), re.ASCII
)


def seconds(value: float | timedelta | str) -> float:
    """90, timedelta(minutes=5), "90s", "1h30m" and "250ms", all in seconds; else BadInput.

    Also where it is longer than a hundred years: a time must not leave the calendar.
    """
    match value:
        case timedelta():
            length = value.total_seconds()
        case str():
            length = _read(value)
        case int() | float() if not isinstance(value, bool):
            length = _number(value)
        case _:
            raise BadInput(
                say(
                    "{value} is no length of time; write seconds, or text like '5m'",
                    value=shown(value),
                )
            )
    if not 0 <= length < math.inf:
        raise BadInput(
            say(
                "{value} is no length of time: it must be finite and not negative",
                value=shown(value),
            )
        )
    if length > LONGEST:
        raise BadInput(
            say(
                "{value} is too long: a length of time is at most 100 years", value=shown(value)
            )
        )
    return length


def instant(at: Any, *, now: float | None = None) -> datetime:
    """An instant with a time zone, from 1970 on, in UTC; else BadInput.

    With `now`, in seconds since 1970, also where it is more than a hundred years ahead.
    """
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise BadInput(
            say("an instant is a datetime with a time zone, not {since}", since=shown(at))
        )
    try:
        found = at.astimezone(UTC)
        ahead = found.timestamp() - (found.timestamp() if now is None else now)
    except OverflowError:
        raise BadInput(say("{since} is no instant of ours", since=at)) from None
    if found.year < EARLIEST or ahead > LONGEST:
        raise BadInput(
            say("{since} is too far away: from 1970 to 100 years from now", since=at)
        )
    return found


def shown(value: object) -> str:
    """What was given, as an error shows it; whatever its repr does."""
    try:
        return repr(value)[:SHOWN]
    except Exception:  # noqa: BLE001 — a whole number of five thousand digits, a class of a stranger
        return f"a {type(value).__name__}"


def _read(text: str) -> float:
    found = WRITTEN.fullmatch(text)
    if not text or found is None:
        raise BadInput(
            say(
                "{text} is no length of time; write '250ms', '90s' or '1h30m'", text=shown(text)
            )
        )
    return sum(float(found[unit]) * size for unit, size in UNITS.items() if found[unit])


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
