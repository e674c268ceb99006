"""Map HTTP statuses to failures: retry, retry later, or give up. A policy may override the table."""

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

from retoma.engine.rules.errors import Permanent, Throttled, Transient
from retoma.engine.rules.retry import retry_after


@dataclass(frozen=True, slots=True)
class FailureType:
    """The failure that a status stands for. `known`: the request certainly had no effect."""

    raises: type[Transient] | type[Permanent]
    code: str
    known: bool = True


RETRY: Final = FailureType(Transient, "transient")
RETRY_UNSURE: Final = FailureType(Transient, "transient", known=False)
LATER: Final = FailureType(Throttled, "throttled")
NEVER: Final = FailureType(Permanent, "permanent")
GARBLED: Final = FailureType(Transient, "bad_answer", known=False)

ANSWERS: Final[Mapping[int, FailureType]] = {
    401: FailureType(Permanent, "config"),  # parks the job: a person must replace the key
    402: FailureType(Permanent, "budget"),
    407: FailureType(Permanent, "config"),
    408: RETRY,
    421: RETRY,
    425: RETRY,
    429: LATER,
    501: NEVER,
    503: RETRY,
    505: NEVER,
    529: RETRY,  # overloaded: not standard, but widely used
}
# A redirect may also confirm a form, so it is unknown whether a request with an effect succeeded.
REDIRECT: Final = FailureType(Permanent, "permanent", known=False)
HUNDREDS: Final[Mapping[int, FailureType]] = {3: REDIRECT, 4: NEVER, 5: RETRY_UNSURE}


def classify_status(status: int, own: Mapping[int, FailureType]) -> FailureType:
    """Return the failure type of a status; an application's own table comes first."""
    return own.get(status) or ANSWERS.get(status) or HUNDREDS.get(status // 100, GARBLED)


def parse_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Read Retry-After as seconds, within bounds; None if it is missing or invalid.

    A date is compared with the answer's own Date, because the service's clock may differ from ours.
    """
    header = headers.get("retry-after")
    wait = retry_after(header)
    until = _timestamp(header) if wait is None else None
    if until is None:
        return wait
    return retry_after(until - (_timestamp(headers.get("date")) or now))


def _timestamp(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, TypeError, OverflowError, OSError):
        return None
