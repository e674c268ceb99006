"""What a request may be before anybody looks at it: which host, how large, how long, how often.

Plain ASGI, around everything: also what no route knows is answered with a problem, has a trace
id and the headers that keep a browser from doing what it should not.
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final
from urllib.parse import parse_qsl

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retoma.engine.ports import Clock, Ids
from retoma.web import problems
from retoma.web.body import Shape
from retoma.web.problems import Refusal
from retoma.web.request_body import BODY, BodyLimit, Gone, RequestBody, too_large
from retoma.web.room import Room
from retoma.web.visit import PRINTABLE, VISIT, Visit, headers_of, visit_of
from retoma.words import say

MEBIBYTE: Final = 1024 * 1024
UNSAFE: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
HEAD: Final = 16 * 1024  # bytes of a request before its body
KEY_NAMES: Final = frozenset(
    {"api_key", "apikey", "api-key", "x-api-key", "access_token", "authorization", "token"}
)
A_KEY: Final = re.compile(r"retoma_[0-9a-f]{16}_[0-9A-Za-z]{20,}")
YEAR: Final = 365 * 86_400  # seconds
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
    # Bytes that may be sent there, as they come; None: as all have it.
    uploads: Mapping[str, int | None] = field(default_factory=dict)
    # JSON that may be larger than elsewhere: bytes, and what may be in it.
    large_json: Mapping[str, tuple[int, Shape]] = field(default_factory=dict)
    streams: Sequence[str] = ()  # answers that never end
    is_secure: bool = False  # people reach us over TLS alone


class Bounds:
    """The outermost application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        bound: Bound,
        places: Places,
        clock: Clock,
        ids: Ids,
        room: Room | None = None,
    ) -> None:
        self._app = app
        self._bound = bound
        self.places = places
        self._clock = clock
        self._ids = ids
        self._room = room or Room()
        self._keys = Buckets(bound.per_key, bound.burst, clock)
        self._addresses = Buckets(bound.per_address, bound.burst, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = headers_of(scope)
        visit = scope[VISIT] = visit_of(headers, self._ids)
        answer = _Answer(send, scope, visit, self.places.is_secure)
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
            with closing(self._body(scope, headers, receive)) as body:
                async with self._time(scope) as body.deadline:
                    await self._app(scope, body.receive, answer)
        except Refusal as refusal:
            await _refuse(refusal, scope, receive, answer, visit)
        except TimeoutError:
            await _refuse(_too_slow(), scope, receive, answer, visit)
        except Gone:
            return

    def _time(self, scope: Scope) -> AbstractAsyncContextManager[asyncio.Timeout | None]:
        path = scope["path"]
        takes_long = path in self.places.large_json or self._upload(scope) is not None
        if takes_long or _is_below(path, self.places.streams):
            return nullcontext()
        return asyncio.timeout(self._bound.seconds)

    # — before the body —

    def _check(self, scope: Scope, headers: Mapping[str, str]) -> None:
        _check_head(scope, headers)
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
        known = self.places.hosts
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

    def _body(self, scope: Scope, headers: Mapping[str, str], receive: Receive) -> RequestBody:
        """What may come, and nothing of it read yet."""
        limit = self._limit(scope)
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > limit.size:
            raise too_large(limit.size)
        body = scope[BODY] = RequestBody(receive, scope, headers, limit, self._room)
        return body

    def _limit(self, scope: Scope) -> BodyLimit:
        bound = self._bound
        upload = self._upload(scope)
        if upload is not None:
            return BodyLimit(size=upload, seconds=bound.seconds)
        size, shape = self.places.large_json.get(scope["path"], (bound.body, bound.shape))
        return BodyLimit(size=size, seconds=bound.seconds, shape=shape)

    def _upload(self, scope: Scope) -> int | None:
        """How many bytes may come there as they come; None: nothing comes so. There, and not below
        it: whoever takes a body whole must not be sent a large one."""
        uploads = self.places.uploads
        if scope["method"] not in UNSAFE or scope["path"] not in uploads:
            return None
        most = uploads[scope["path"]]
        return self._bound.upload if most is None else most


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


class _Answer:
    """Sends on, with our headers on top."""

    def __init__(self, send: Send, scope: Scope, visit: Visit, is_secure: bool) -> None:
        self._is_secure = is_secure
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
        if self._is_secure:
            wanted["Strict-Transport-Security"] = f"max-age={YEAR}"
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


def _check_head(scope: Scope, headers: Mapping[str, str]) -> None:
    size = len(scope["path"]) + len(scope["query_string"])
    size += sum(len(name) + len(value) + 4 for name, value in scope["headers"])
    if size > HEAD:
        raise Refusal(
            "headers_too_large",
            say(
                "the address and the headers of a request have at most {most} bytes", most=HEAD
            ),
        )
    if "content-length" in headers and "transfer-encoding" in headers:
        # A proxy before us may believe the one where we believe the other: two requests in one.
        raise Refusal(
            "bad_request",
            say("a body has a Content-Length or a Transfer-Encoding, never both"),
            headers={"Connection": "close"},
        )


def _check_query(scope: Scope) -> None:
    text = scope["query_string"].decode("latin-1")
    pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=None)
    if any(name.lower() in KEY_NAMES or A_KEY.search(value) for name, value in pairs):
        raise Refusal(
            "key_in_query",
            say("a key stands in a header, never in an address: addresses are written down"),
        )


def _too_slow() -> Refusal:
    return Refusal(
        "too_slow",
        say("this takes longer than an answer may; it may have happened: look first"),
        headers={"Retry-After": str(problems.LATER)},
    )


def _is_below(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)
