"""What can go wrong between a request and its answer, as problem+json (RFC 9457).

A problem has a status, a `code` for programs, a sentence for people in their language, and the trace
id by which the log knows it. Never a stack, a statement or a path.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from retoma.codec import Misfit, Undecodable, Unstorable
from retoma.db import Away, BadRow, Busy, DatabaseError, Full
from retoma.engine.rules.errors import (
    BadInput,
    IdempotencyMismatch,
    IllegalMove,
    NotFound,
    RetomaError,
    UnknownKind,
    Unsure,
)
from retoma.secret import redact_text
from retoma.web.visit import Visit
from retoma.words import Said, say, tell

MEDIA: Final = "application/problem+json"
LATER: Final = 5  # seconds after which it is worth asking again

# Every code, and its status.
CODES: Final[Mapping[str, HTTPStatus]] = {
    "bad_request": HTTPStatus.BAD_REQUEST,
    "bad_header": HTTPStatus.BAD_REQUEST,
    "bad_json": HTTPStatus.BAD_REQUEST,
    "key_in_query": HTTPStatus.BAD_REQUEST,
    "sign_in": HTTPStatus.UNAUTHORIZED,
    "not_allowed": HTTPStatus.FORBIDDEN,
    "csrf": HTTPStatus.FORBIDDEN,
    "not_found": HTTPStatus.NOT_FOUND,
    "method_not_allowed": HTTPStatus.METHOD_NOT_ALLOWED,
    "too_slow_request": HTTPStatus.REQUEST_TIMEOUT,
    "confirmation_needed": HTTPStatus.CONFLICT,
    "idempotency_mismatch": HTTPStatus.CONFLICT,
    "illegal_move": HTTPStatus.CONFLICT,
    "lease_valid": HTTPStatus.CONFLICT,
    "too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "headers_too_large": HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "bad_media_type": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "wrong_host": HTTPStatus.MISDIRECTED_REQUEST,
    "bad_input": HTTPStatus.UNPROCESSABLE_ENTITY,
    "bad_cursor": HTTPStatus.UNPROCESSABLE_ENTITY,
    "unknown_kind": HTTPStatus.UNPROCESSABLE_ENTITY,
    "unknown_profile": HTTPStatus.UNPROCESSABLE_ENTITY,
    "too_many_requests": HTTPStatus.TOO_MANY_REQUESTS,
    "internal": HTTPStatus.INTERNAL_SERVER_ERROR,
    "database_away": HTTPStatus.SERVICE_UNAVAILABLE,
    "database_unfit": HTTPStatus.SERVICE_UNAVAILABLE,
    "too_slow": HTTPStatus.SERVICE_UNAVAILABLE,
    "unsure": HTTPStatus.SERVICE_UNAVAILABLE,
    "provider_away": HTTPStatus.SERVICE_UNAVAILABLE,
    "database_full": HTTPStatus.INSUFFICIENT_STORAGE,
}

TITLES: Final[Mapping[HTTPStatus, Said]] = {
    HTTPStatus.BAD_REQUEST: say("The request cannot be read"),
    HTTPStatus.UNAUTHORIZED: say("Sign in first"),
    HTTPStatus.FORBIDDEN: say("Not allowed"),
    HTTPStatus.NOT_FOUND: say("Not found"),
    HTTPStatus.METHOD_NOT_ALLOWED: say("That cannot be done here"),
    HTTPStatus.REQUEST_TIMEOUT: say("The request took too long to arrive"),
    HTTPStatus.CONFLICT: say("As it stands this cannot be done"),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: say("Too large"),
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: say("The headers are too large"),
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: say("Not in this form"),
    HTTPStatus.MISDIRECTED_REQUEST: say("Wrong host"),
    HTTPStatus.UNPROCESSABLE_ENTITY: say("A value is not allowed"),
    HTTPStatus.TOO_MANY_REQUESTS: say("Too many requests"),
    HTTPStatus.INTERNAL_SERVER_ERROR: say("Something went wrong"),
    HTTPStatus.SERVICE_UNAVAILABLE: say("Not now"),
    HTTPStatus.INSUFFICIENT_STORAGE: say("No room left"),
}


@dataclass(frozen=True, slots=True)
class Flaw:
    """One value that is not allowed: where it stands, and why."""

    path: str
    why: Said


@dataclass(slots=True)
class Refusal(Exception):
    """A request that is answered with a problem."""

    code: str
    detail: Said
    flaws: list[Flaw] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)  # members of its own, such as the state

    def __post_init__(self) -> None:
        Exception.__init__(self, self.code)


def unanswered(error: Exception, methods: Iterable[str] = ()) -> Refusal:
    """What is said to whoever asked for what no route answers. `methods`: what the address does take."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    match status:
        case HTTPStatus.NOT_FOUND:
            refusal = Refusal("not_found", say("there is nothing at this address"))
        case HTTPStatus.METHOD_NOT_ALLOWED:
            refusal = Refusal("method_not_allowed", say("this address does not do that"))
        case _:
            refusal = Refusal("bad_request", say("the request cannot be read"))
    if isinstance(error, HTTPException):
        refusal.headers.update(error.headers or {})
    if status == HTTPStatus.METHOD_NOT_ALLOWED and methods:
        refusal.headers["Allow"] = ", ".join(sorted(methods))
    return refusal


def refusal_of(error: Exception) -> Refusal | None:
    """What an error of ours is to whoever asked; None: it is nobody's fault but our own."""
    match error:
        case Refusal():
            return error
        case HTTPException():  # a body that came as it is, and FastAPI could not read
            return unanswered(error)
        case Misfit():
            return _misfit(error)
        case RetomaError():
            return _refused(error)
        case DatabaseError():
            return _of_database(error)
        case _:
            return None


def _refused(error: RetomaError) -> Refusal | None:
    said = _said(error)
    match error:
        case NotFound():
            return Refusal("not_found", said)
        case IllegalMove():
            return Refusal("illegal_move", said)
        case IdempotencyMismatch():
            return Refusal("idempotency_mismatch", said)
        case UnknownKind():
            return Refusal("unknown_kind", said)
        case BadInput():
            return Refusal("bad_input", said)
        case Unsure():
            return Refusal("unsure", said)
        case _:
            return None


def _of_database(error: DatabaseError) -> Refusal:
    match error:
        case Full():
            return Refusal(
                "database_full",
                say("the database has no room left; nothing was changed"),
                headers=_later(),
            )
        case Away() | Busy():
            return Refusal(
                "database_away",
                say("the database does not answer; nothing was changed, ask again"),
                headers=_later(),
            )
        case BadRow():
            return Refusal(
                "bad_input", say("a value cannot be stored as it is; nothing was changed")
            )
        case _:
            return Refusal(
                "database_unfit",
                say("the database cannot be used as it is; nothing was changed"),
                headers=_later(),
            )


def _misfit(error: Misfit) -> Refusal:
    match error:
        case Unstorable(why=why) | Undecodable(why=why):
            told = say("{why}", why=redact_text(str(why)))  # it shows what was found there
        case _:
            told = say("does not fit")
    path = f"payload{error.path.removeprefix('$')}"
    return Refusal(
        "bad_input", say("a value is not allowed; nothing was changed"), [Flaw(path, told)]
    )


def _said(error: Exception) -> Said:
    first = error.args[0] if error.args else ""
    return first if isinstance(first, Said) else say("{error}", error=str(error))


def _later() -> dict[str, str]:
    return {"Retry-After": str(LATER)}


def internal() -> Refusal:
    return Refusal("internal", say("this is our fault and was written down; name the trace id"))


# — as an answer —


def document(refusal: Refusal, visit: Visit) -> dict[str, Any]:
    status = CODES[refusal.code]
    made: dict[str, Any] = {
        "type": "about:blank",
        "title": tell(TITLES[status], visit.language),
        "status": int(status),
        "code": refusal.code,
        "detail": tell(refusal.detail, visit.language),
        "trace_id": visit.trace_id,
        **refusal.more,
    }
    if refusal.flaws:
        made["errors"] = [
            {"path": flaw.path, "message": tell(flaw.why, visit.language)}
            for flaw in refusal.flaws
        ]
    return made


def response(refusal: Refusal, visit: Visit) -> Response:
    return Response(
        json.dumps(document(refusal, visit), ensure_ascii=False, default=str),
        status_code=int(CODES[refusal.code]),
        media_type=MEDIA,
        headers={"Content-Language": visit.language.replace("_", "-"), **refusal.headers},
    )
