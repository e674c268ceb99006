"""Lengths of time as people write them, turned into seconds."""

import math
import re
from datetime import timedelta
from typing import Final

from retoma.engine.errors import BadInput
from retoma.words import say

UNITS: Final = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
# Largest unit first and each at most once: "30m1h" is a slip of the pen, not a length of time.
WRITTEN: Final = re.compile(
    "".join(rf"(?:(?P<{unit}>[0-9]+(?:\.[0-9]+)?){unit})?" for unit in UNITS), re.ASCII
)


def seconds(value: float | timedelta | str) -> float:
    """90, timedelta(minutes=5), "90s", "1h30m" and "250ms", all in seconds; else BadInput."""
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
                    "{value!r} is no length of time; write seconds, or text like '5m'",
                    value=value,
                )
            )
    if not 0 <= length < math.inf:
        raise BadInput(
            say(
                "{value!r} is no length of time: it must be finite and not negative",
                value=value,
            )
        )
    return length


def _read(text: str) -> float:
    found = WRITTEN.fullmatch(text)
    if not text or found is None:
        raise BadInput(
            say("{text!r} is no length of time; write '250ms', '90s' or '1h30m'", text=text)
        )
    return sum(float(found[unit]) * size for unit, size in UNITS.items() if found[unit])


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
