"""What an answer means: again, later, or never. A table, which a purpose may overrule."""

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

from retoma.engine.rules.errors import Permanent, Throttled, Transient
from retoma.engine.rules.retry import retry_after


@dataclass(frozen=True, slots=True)
class Sort:
    """Which failure a status is. `known`: what was asked for has certainly not happened."""

    raises: type[Transient] | type[Permanent]
    code: str
    known: bool = True


AGAIN: Final = Sort(Transient, "transient")
AGAIN_UNKNOWN: Final = Sort(Transient, "transient", known=False)
LATER: Final = Sort(Throttled, "throttled")
NEVER: Final = Sort(Permanent, "permanent")
GARBLED: Final = Sort(Transient, "bad_answer", known=False)

ANSWERS: Final[Mapping[int, Sort]] = {
    401: Sort(Permanent, "config"),  # parked: a person must see to the key
    402: Sort(Permanent, "budget"),
    407: Sort(Permanent, "config"),
    408: AGAIN,
    421: AGAIN,
    425: AGAIN,
    429: LATER,
    501: NEVER,
    503: AGAIN,
    505: NEVER,
    529: AGAIN,  # overloaded: not a standard, but widely said
}
# A redirect is also how a form says that it was taken: what it means for a deed nobody knows.
ELSEWHERE: Final = Sort(Permanent, "permanent", known=False)
HUNDREDS: Final[Mapping[int, Sort]] = {3: ELSEWHERE, 4: NEVER, 5: AGAIN_UNKNOWN}


def sort_of(status: int, own: Mapping[int, Sort]) -> Sort:
    """What a status that is no success means; an application's table comes first."""
    return own.get(status) or ANSWERS.get(status) or HUNDREDS.get(status // 100, GARBLED)


def asked_wait(headers: Mapping[str, str], now: float) -> float | None:
    """Retry-After in seconds, within what we put up with; None where it says nothing.

    A date is measured against the answer's own Date: their clock need not be ours.
    """
    said = headers.get("retry-after")
    wait = retry_after(said)
    until = _instant(said) if wait is None else None
    if until is None:
        return wait
    return retry_after(until - (_instant(headers.get("date")) or now))


def _instant(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, TypeError, OverflowError, OSError):
        return None
