"""What is met at each endpoint of the two services (§9) instead of a good answer, and what that means.

One table: endpoint and status, or failure of the network → a code of the document, and whose trouble it
is. HTTP 401 is a key that a person must see to, and not ERROR401, which is a worker's trouble with its
own storage. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from retoma.engine.rules.errors import ErrorClass, Permanent, Transient, Unsure
from retoma.outbound import FailureType


class Endpoint(StrEnum):
    """Where we ask."""

    OPEN_SESSION = "POST /session"
    SESSION_STATUS = "GET /session/status"
    CLOSE_SESSION = "DELETE /session"
    START_SCRAPE = "POST /scrape"
    FIND_SCRAPE = "GET /scrape?key"
    SCRAPE_STATUS = "GET /scrape/{job_id}"
    CANCEL_SCRAPE = "POST /scrape/{job_id}/cancel"
    PROCESS = "POST /process"
    WRITE_STATUS = "GET /status/{job_id}"
    HEALTH = "GET /health"


class Met(StrEnum):
    """What came instead; the values are the codes of the failures that our client raises."""

    REFUSED = "no_answer"
    TIMEOUT = "timeout"
    NOT_JSON = "bad_answer"
    TOO_LARGE = "too_large"
    REDIRECT = "http_300"
    BAD_REQUEST = "http_400"
    UNAUTHORIZED = "http_401"
    FORBIDDEN = "http_403"
    NOT_FOUND = "http_404"
    CONFLICT = "http_409"
    PAYLOAD_TOO_LARGE = "http_413"
    UNPROCESSABLE = "http_422"
    TOO_MANY = "http_429"
    INTERNAL = "http_500"
    UNAVAILABLE = "http_503"


@dataclass(frozen=True, slots=True)
class Meaning:
    """A code, and whose trouble it is: LOST where what was asked for may have happened all the same."""

    code: str
    error_class: ErrorClass


BLOCKED: Final = "ssrf_blocked"  # what our client says of an address that nobody may call
THROTTLED: Final = (
    "throttled"  # no code either: asked again when they say, and nothing is counted
)
CONFIG: Final = "config"  # no code of the document: the mission waits for a person
_SOON: Final = ErrorClass.TRANSIENT
_KEY: Final = Meaning(CONFIG, ErrorClass.CONFIG)
_AWAY: Final = Meaning("ERROR502", _SOON)
_ASK_ADMIN: Final = Meaning("ERROR502", ErrorClass.CONFIG)
_LATER: Final = Meaning(THROTTLED, ErrorClass.THROTTLED)
_OURS: Final = Meaning("ERROR500", ErrorClass.DATA)
_SCHEMA: Final = Meaning("ERROR303", ErrorClass.CONFIG)

Row = Mapping[Met, Meaning]


def _all(meaning: Meaning, *, but: Row | None = None) -> Row:
    return {**dict.fromkeys(Met, meaning), **(but or {})}


# Who is only asked has told us nothing: what ends the asking is the deadline of the work.
_LOCKED: Final[Row] = {Met.UNAUTHORIZED: _KEY, Met.FORBIDDEN: _KEY, Met.UNPROCESSABLE: _KEY}
_MEANINGS: Final[Mapping[Endpoint, Row]] = {
    Endpoint.OPEN_SESSION: _all(
        _AWAY,
        but={
            Met.BAD_REQUEST: _OURS,
            Met.PAYLOAD_TOO_LARGE: _OURS,
            Met.UNPROCESSABLE: Meaning("ERROR500", ErrorClass.CONFIG),
            Met.UNAUTHORIZED: _ASK_ADMIN,
            Met.FORBIDDEN: _ASK_ADMIN,
            Met.NOT_FOUND: _ASK_ADMIN,
            Met.REDIRECT: _ASK_ADMIN,
            Met.INTERNAL: Meaning("ERROR100", _SOON),
            Met.TOO_LARGE: Meaning("ERROR100", _SOON),
            Met.TOO_MANY: Meaning("ERROR502", ErrorClass.THROTTLED),
        },
    ),
    Endpoint.SESSION_STATUS: _all(_AWAY),
    Endpoint.CLOSE_SESSION: _all(_AWAY),
    Endpoint.START_SCRAPE: _all(
        Meaning("ERROR200", ErrorClass.LOST),
        but={
            **_LOCKED,
            Met.REFUSED: _AWAY,
            Met.CONFLICT: _AWAY,
            Met.UNAVAILABLE: _AWAY,
            Met.BAD_REQUEST: _OURS,
            Met.PAYLOAD_TOO_LARGE: _OURS,
            Met.NOT_FOUND: Meaning("ERROR200", _SOON),
            Met.TOO_MANY: _LATER,
        },
    ),
    Endpoint.FIND_SCRAPE: _all(_AWAY),
    Endpoint.SCRAPE_STATUS: _all(
        Meaning("ERROR202", _SOON),
        but={**_LOCKED, Met.NOT_FOUND: Meaning("ERROR200", _SOON)},
    ),
    Endpoint.CANCEL_SCRAPE: _all(Meaning("ERROR202", _SOON)),
    Endpoint.PROCESS: _all(
        Meaning("ERROR300", ErrorClass.LOST),
        but={
            **_LOCKED,
            Met.REFUSED: Meaning("ERROR301", _SOON),
            Met.TIMEOUT: Meaning("ERROR302", _SOON),
            Met.UNAVAILABLE: Meaning("ERROR301", _SOON),
            Met.NOT_FOUND: _KEY,
            Met.BAD_REQUEST: _SCHEMA,
            Met.PAYLOAD_TOO_LARGE: _SCHEMA,
            Met.CONFLICT: Meaning("ERROR300", _SOON),
            Met.TOO_MANY: _LATER,
        },
    ),
    Endpoint.WRITE_STATUS: _all(
        Meaning("ERROR300", _SOON),
        but={
            **_LOCKED,
            Met.REFUSED: Meaning("ERROR301", _SOON),
            Met.UNAVAILABLE: Meaning("ERROR301", _SOON),
            Met.TIMEOUT: Meaning("ERROR302", _SOON),
        },
    ),
    Endpoint.HEALTH: _all(
        Meaning("ERROR301", _SOON), but={Met.TIMEOUT: Meaning("ERROR302", _SOON)}
    ),
}

_OF_WORKERS: Final = frozenset(Endpoint) - {
    Endpoint.PROCESS,
    Endpoint.WRITE_STATUS,
    Endpoint.HEALTH,
}

# What certainly did not happen where it was answered so.
_KNOWN: Final = frozenset(Met) - {Met.REDIRECT, Met.INTERNAL}
_TRANSIENT: Final = {Met.TOO_MANY, Met.UNAVAILABLE}  # those may say for how long
_LIKE: Final = {402: Met.UNAUTHORIZED, 407: Met.UNAUTHORIZED, 408: Met.UNAVAILABLE}


def met(status: int) -> Met:
    """As what a status counts: one that is in no table as the first of its hundred."""
    if status in _LIKE:
        return _LIKE[status]
    try:
        return Met(f"http_{status}")
    except ValueError:
        return Met(f"http_{status // 100}00")


def _sort(what: Met) -> FailureType:
    raises = Transient if what in _TRANSIENT else Permanent
    return FailureType(raises, str(what), known=what in _KNOWN)


# For our client: which failure each status is.
ANSWERS: Final[Mapping[int, FailureType]] = {n: _sort(met(n)) for n in range(300, 600)}


def meaning(endpoint: Endpoint, code: str) -> Meaning:
    """Of a failure of our client; an address that may not be called is for a person to see to."""
    try:
        return _MEANINGS[endpoint][Met(code)]
    except ValueError:
        return _ASK_ADMIN if code == BLOCKED and endpoint in _OF_WORKERS else _KEY


def in_their_words(
    endpoint: Endpoint, error: Transient | Permanent | Unsure
) -> Transient | Permanent | Unsure:
    """The failure of a call, by the code of the document. What may have happened stays unsure."""
    meant = meaning(endpoint, error.code if error.code != "unsure" else Met.TIMEOUT)
    if isinstance(error, Unsure) and endpoint in (Endpoint.START_SCRAPE, Endpoint.PROCESS):
        return error
    text = f"{BLOCKED}: {error}" if error.code == BLOCKED else str(error)
    text = text.removeprefix("ads ").replace(": answered ", ": HTTP ")
    if meant.code == CONFIG or meant.error_class is ErrorClass.DATA:
        return Permanent(text, code=meant.code)
    wait = error.retry_after if isinstance(error, Transient) else None
    return Transient(text, code=meant.code, retry_after=wait)
