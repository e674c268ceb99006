"""What a request may be before anybody looks at it: which host, how large, how long, how often.

Plain ASGI, around everything: also what no route knows is answered with a problem, has a trace
id and the headers that keep a browser from doing what it should not.
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from email.message import Message as MailMessage
from hashlib import sha256
from typing import Final
from urllib.parse import parse_qsl

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retoma.engine.ports import Clock, Ids
from retoma.web import problems
from retoma.web.body import Shape, check_json
from retoma.web.problems import Refusal
from retoma.web.visit import PRINTABLE, VISIT, Visit, headers_of, visit_of
from retoma.words import say

MEBIBYTE: Final = 1024 * 1024
UNSAFE: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
KEY_NAMES: Final = frozenset(
    {"api_key", "apikey", "api-key", "x-api-key", "access_token", "authorization", "token"}
)
A_KEY: Final = re.compile(r"retoma_[0-9a-f]{16}_[0-9A-Za-z]{20,}")
REMEMBERED: Final = (
    10_000  # callers whose pace is known; the one that is quiet longest goes first
)

# Nothing is loaded from anywhere else, nothing frames us, nothing is guessed.
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none';"
    " base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    # To others nothing is told. With no-referrer a browser would post forms as from nowhere.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

log = structlog.get_logger("retoma.web")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """How much is too much."""

    body: int = MEBIBYTE
    upload: int = 50 * MEBIBYTE
    seconds: float = 30.0  # for the request to arrive, and again for its answer to begin
    shape: Shape = field(default_factory=Shape)
    per_key: float = 100.0  # requests a second
    per_address: float = 200.0
    burst: float = 10.0  # seconds' worth that may come at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Which paths are not like the others, and under which names we are known."""

    hosts: frozenset[str] | None = None  # None: any
    uploads: Mapping[str, int | None] = field(
        default_factory=dict
    )  # bytes; None: as all have it
    streams: Sequence[str] = ()  # answers that never end


class Bounds:
    """The outermost application."""

    def __init__(
        self, app: ASGIApp, *, bound: Bound, places: Places, clock: Clock, ids: Ids
    ) -> None:
        self._app = app
        self._bound = bound
        self._places = places
        self._clock = clock
        self._ids = ids
        self._keys = Buckets(bound.per_key, bound.burst, clock)
        self._addresses = Buckets(bound.per_address, bound.burst, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = headers_of(scope)
        visit = scope[VISIT] = visit_of(headers, self._ids)
        answer = _Answer(send, scope, visit)
        began = self._clock.now()
        with structlog.contextvars.bound_contextvars(
            trace_id=visit.trace_id, correlation=visit.correlation
        ):
            await self._answered(scope, headers, receive, answer, visit)
            _tell(scope, answer, self._clock.now() - began)

    async def _answered(
        self,
        scope: Scope,
        headers: Mapping[str, str],
        receive: Receive,
        answer: "_Answer",
        visit: Visit,
    ) -> None:
        try:
            self._check(scope, headers)
            body = await self._body(scope, headers, receive)
            async with self._time(scope):
                await self._app(scope, body, answer)
        except Refusal as refusal:
            await _refuse(refusal, scope, receive, answer, visit)
        except TimeoutError:
            await _refuse(_too_slow(), scope, receive, answer, visit)
        except _Gone:
            return

    def _time(self, scope: Scope) -> AbstractAsyncContextManager[object]:
        if self._upload(scope) is not None or _is_below(scope["path"], self._places.streams):
            return nullcontext()
        return asyncio.timeout(self._bound.seconds)

    # — before the body —

    def _check(self, scope: Scope, headers: Mapping[str, str]) -> None:
        self._check_host(headers)
        _check_query(scope)
        correlation = headers.get("x-correlation-id")
        if correlation is not None and not PRINTABLE.fullmatch(correlation):
            raise Refusal(
                "bad_header",
                say("X-Correlation-Id has 1 to {most} printable ASCII characters", most=200),
            )
        self._check_pace(scope, headers)

    def _check_host(self, headers: Mapping[str, str]) -> None:
        known = self._places.hosts
        if known is not None and headers.get("host", "").lower() not in known:
            raise Refusal(
                "wrong_host", say("nobody is known here by the host this request names")
            )

    def _check_pace(self, scope: Scope, headers: Mapping[str, str]) -> None:
        client = scope.get("client")
        waits = [self._addresses.take(client[0] if client else "")]
        given = headers.get("x-api-key") or headers.get("authorization")
        if given:
            waits.append(self._keys.take(sha256(given.encode()).hexdigest()))
        if max(waits) > 0:
            raise Refusal(
                "too_many_requests",
                say("more requests came than are answered; come back a little later"),
                headers={"Retry-After": str(int(max(waits)) + 1)},
            )

    # — the body —

    async def _body(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive
    ) -> Receive:
        upload = self._upload(scope)
        most = self._bound.body if upload is None else upload
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > most:
            raise _too_large(most)
        if upload is not None:
            return _counting(receive, most)
        try:
            async with asyncio.timeout(self._bound.seconds):
                raw = await _read(receive, most)
        except TimeoutError:
            raise Refusal(
                "too_slow_request",
                say(
                    "the request did not arrive within {seconds:g} s",
                    seconds=self._bound.seconds,
                ),
                headers={"Connection": "close"},
            ) from None
        if raw and scope["method"] in UNSAFE:
            self._check_media(scope["path"], headers.get("content-type", ""), raw)
        return _replayed(raw, receive)

    def _upload(self, scope: Scope) -> int | None:
        """How many bytes may come there as they come; None: nothing comes so. There, and not below
        it: whoever takes a body whole must not be sent a large one."""
        uploads = self._places.uploads
        if scope["method"] not in UNSAFE or scope["path"] not in uploads:
            return None
        most = uploads[scope["path"]]
        return self._bound.upload if most is None else most

    def _check_media(self, path: str, content_type: str, raw: bytes) -> None:
        message = MailMessage()
        message["content-type"] = content_type or "none/none"
        media, charset = message.get_content_type(), message.get_param("charset", "utf-8")
        if media in FORMS and not path.startswith("/api/"):
            return
        if media != "application/json" or str(charset).lower() not in ("utf-8", "utf8"):
            raise Refusal(
                "bad_media_type", say("a body here is application/json in UTF-8, and says so")
            )
        check_json(raw, self._bound.shape)


class Buckets:
    """Tokens for each caller: so many a second, so many seconds' worth at once."""

    def __init__(self, rate: float, burst: float, clock: Clock) -> None:
        self._rate = rate
        self._most = max(rate * burst, 1.0)
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> float:
        """Seconds until there is one; 0: it was taken."""
        now = self._clock.now()
        tokens, since = self._left.pop(caller, (self._most, now))
        tokens = min(tokens + max(now - since, 0.0) * self._rate, self._most)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self._rate
        self._left[caller] = (tokens - 1 if not wait else tokens, now)
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
        return wait


class _Gone(Exception):
    """Whoever asked has left; there is nobody to answer."""


class _Answer:
    """Sends on, with our headers on top."""

    def __init__(self, send: Send, scope: Scope, visit: Visit) -> None:
        self._send = send
        self._path = scope["path"]
        self._visit = visit
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": self._dressed(message.get("headers", []))}
        await self._send(message)

    def _dressed(self, headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        there = {name.lower() for name, _ in headers}
        wanted = {**HEADERS, "X-Trace-Id": self._visit.trace_id, "Vary": "Accept-Language"}
        if self._path.startswith("/api/"):
            wanted["Cache-Control"] = "no-store"
        more = [
            (name.lower().encode(), value.encode())
            for name, value in wanted.items()
            if name.lower().encode() not in there
        ]
        return [*headers, *more]


async def _refuse(
    refusal: Refusal, scope: Scope, receive: Receive, answer: _Answer, visit: Visit
) -> None:
    if answer.status is None:  # else it has begun: all that is left is to end it
        await problems.response(refusal, visit)(scope, receive, answer)


def _tell(scope: Scope, answer: _Answer, seconds: float) -> None:
    """One line for each request. Never the path itself: it may carry what opens a door."""
    route = scope.get("route")
    log.info(
        "request",
        method=scope["method"],
        route=getattr(route, "path", None),
        status=answer.status,
        who=scope.get("retoma.who"),
        duration_ms=round(seconds * 1000, 1),
    )


def _check_query(scope: Scope) -> None:
    text = scope["query_string"].decode("latin-1")
    pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=None)
    if any(name.lower() in KEY_NAMES or A_KEY.search(value) for name, value in pairs):
        raise Refusal(
            "key_in_query",
            say("a key stands in a header, never in an address: addresses are written down"),
        )


async def _read(receive: Receive, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return b"".join(parts)


def _replayed(raw: bytes, receive: Receive) -> Receive:
    given = False

    async def once() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": raw, "more_body": False}

    return once


def _counting(receive: Receive, most: int) -> Receive:
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > most:
            raise _too_large(most)
        return message

    return counted


def _too_large(most: int) -> Refusal:
    return Refusal(
        "too_large",
        say("a body here has at most {most} bytes", most=most),
        headers={"Connection": "close"},
    )


def _too_slow() -> Refusal:
    return Refusal(
        "too_slow",
        say("this takes longer than an answer may; it may have happened: look first"),
        headers={"Retry-After": str(problems.LATER)},
    )


def _is_below(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)
