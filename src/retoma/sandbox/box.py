"""Wrap a sandbox site: inject faults and log every request.

Below `/_sandbox/` a test can inject faults (`POST faults`), remove them (`DELETE faults`), read the log
(`GET log`) and the requests that are not answered yet (`GET open`).
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Final

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retoma.engine.ports import Clock
from retoma.engine.rules.errors import BadInput
from retoma.sandbox.faults import Fault, FaultKind, Faults

ADMIN: Final = "/_sandbox/"
LARGEST: Final = 64 * 1024  # bytes of a request that injects a fault
OK: Final = 200
LARGEST_REQUEST: Final = 32 * 1024 * 1024  # bytes of a request whose body is read
TOO_LARGE: Final = Fault(trouble=FaultKind.STATUS, status=413)
# How the sandbox's proxies name themselves (RFC 7239).
BY: Final = re.compile(r"by=_([A-Za-z0-9_-]{1,64})")


class _Cut(Exception):
    """Breaks the connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRequest:
    """A request, before it is answered."""

    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def text(self) -> str:
        """The text that a fault's `about` is searched in."""
        return f"{self.path}?{self.query}\n{self.body.decode(errors='replace')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Behavior:
    """How a service rejects requests, how long it takes, what it logs of a request, what it charges."""

    rejection: Callable[[Fault], Response] | None = None  # None: an HTML page
    notes: Callable[[SiteRequest], Mapping[str, Any]] | None = None  # None: bodies are not read
    seconds: Callable[[SiteRequest], float] | None = None
    paid: bool = False  # whether an answer costs money; a rejection never does
    free: tuple[str, ...] = ()  # path prefixes that are never charged


def latency_of(
    seed: int, pace: float, latency: tuple[float, float]
) -> Callable[[SiteRequest], float] | None:
    """Make the latency function of a service: deterministic per request, scaled by `pace`."""
    if pace == 0:
        return None

    def seconds(request: SiteRequest) -> float:
        chance = Random(f"{seed}:{request.text}")  # noqa: S311 — a world, not a secret
        return pace * chance.uniform(*latency)

    return seconds


class Log:
    """Logs every request in order, one line each, before it is answered."""

    def __init__(self, clock: Clock, file: Path | None = None) -> None:
        self._clock = clock
        self._file = file
        self._lines: list[dict[str, Any]] = []

    def write(self, **fields: Any) -> None:
        line = {"n": len(self._lines) + 1, "at": self._clock.wall(), **fields}
        self._lines.append(line)
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")

    def read(self, after: int) -> list[dict[str, Any]]:
        return self._lines[after:]


class Box:
    """An ASGI app of a site, its faults and its log."""

    def __init__(
        self,
        site: ASGIApp,
        faults: Faults,
        *,
        clock: Clock | None = None,
        log_file: Path | None = None,
        behavior: Behavior | None = None,
    ) -> None:
        self._site = site
        self._faults = faults
        self._clock = clock or Clock()
        self._behavior = behavior or Behavior()
        self.log = Log(self._clock, log_file)
        self._open: dict[int, Mapping[str, Any]] = {}  # by the id of the request's scope

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"].startswith(ADMIN):
            answer = await self._admin(scope, receive)
            await answer(scope, receive, send)
            return
        request, receive = await self._read(scope, receive)
        proxy = proxy_of(request.headers)
        fault = self._faults.next(proxy, request.path, request.text)
        if len(request.body) > LARGEST_REQUEST:
            fault = TOO_LARGE
        entry = {
            "proxy": proxy,
            "path": request.path,
            "query": request.query,
            "fault": None if fault is None else str(fault.trouble),
            **(self._behavior.notes(request) if self._behavior.notes else {}),
        }
        self._open[id(scope)] = entry
        try:
            if self._behavior.seconds is not None:
                entry["seconds"] = self._behavior.seconds(request)
                await self._clock.sleep(entry["seconds"])
            await self._respond(fault, entry, scope, receive, send)
        finally:
            del self._open[id(scope)]

    async def _read(self, scope: Scope, receive: Receive) -> tuple[SiteRequest, Receive]:
        """Read the request, and return a `receive` that gives its body again to the site."""
        request = SiteRequest(
            path=scope["path"],
            query=scope["query_string"].decode("latin-1"),
            headers=_headers(scope),
        )
        if self._behavior.notes is None:
            return request, receive
        body = await _body(receive, LARGEST_REQUEST)
        return replace(request, body=body), _replay(body, receive)

    async def _respond(
        self,
        fault: Fault | None,
        entry: dict[str, Any],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Answer as the fault demands."""
        match None if fault is None else fault.trouble:
            case FaultKind.STATUS:
                assert fault is not None  # noqa: S101 — for the reader of types
                self.log.write(**entry, status=fault.status)
                rejection = self._behavior.rejection or _rejection_page
                answer = rejection(fault)
                if fault.retry_after is not None:
                    answer.headers["Retry-After"] = str(fault.retry_after)
                await answer(scope, receive, send)
            case FaultKind.HANG:
                self.log.write(**entry, status=None)
                while (await receive())["type"] != "http.disconnect":
                    pass
            case trouble:
                if fault is not None and trouble is FaultKind.SLOW:
                    await self._clock.sleep(fault.seconds)
                if trouble is FaultKind.HOLD:
                    await self._faults.wait_cleared()
                cut = trouble is FaultKind.CUT
                with suppress(_Cut):  # an answer without an end drops the connection
                    await self._site(scope, receive, self._logging(entry, send, cut=cut))

    def _logging(self, entry: dict[str, Any], send: Send, *, cut: bool) -> Send:
        async def logging_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                free = str(entry["path"]).startswith(self._behavior.free or ("\0",))
                paid = {"paid": status == OK and not free} if self._behavior.paid else {}
                self.log.write(**entry, **paid, status=status)
            elif cut:
                half = message.get("body", b"")[: len(message.get("body", b"")) // 2]
                await send({**message, "body": half, "more_body": True})
                raise _Cut
            await send(message)

        return logging_send

    async def _admin(self, scope: Scope, receive: Receive) -> Response:
        match scope["method"], scope["path"].removeprefix(ADMIN):
            case "GET", "log":
                after = scope["query_string"].decode("latin-1").partition("after=")[2]
                return JSONResponse(self.log.read(int(after) if after.isdigit() else 0))
            case "GET", "open":
                return JSONResponse(list(self._open.values()))
            case "POST", "faults":
                return await self._arm(receive)
            case "DELETE", "faults":
                self._faults.clear()
                return Response(status_code=204)
            case _:
                return JSONResponse({"error": "not found"}, status_code=404)

    async def _arm(self, receive: Receive) -> Response:
        try:
            fault = json.loads(body := await _body(receive, LARGEST))
            if len(body) > LARGEST or not isinstance(fault, dict):
                raise BadInput  # noqa: TRY301 — answered below
            self._faults.arm(Fault.of(fault))
        except (ValueError, BadInput) as error:
            return JSONResponse({"error": str(error)}, status_code=422)
        return Response(status_code=204)


def proxy_of(headers: Mapping[str, str]) -> str | None:
    """Return the proxy that forwarded a request; None if it came directly."""
    match = BY.search(headers.get("forwarded", ""))
    return None if match is None else match[1]


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _rejection_page(fault: Fault) -> Response:
    text = f"<!doctype html><title>{fault.status}</title><p>Not now."
    return Response(text, fault.status, media_type="text/html")


async def _body(receive: Receive, most: int) -> bytes:
    """Read the body; of a body above `most` bytes only a little more than `most`."""
    parts = bytearray()
    while len(parts) <= most:
        message = await receive()
        parts += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return bytes(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    left = [body]

    async def replay() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return replay


def paid_twice(lines: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return each input that was answered, and paid for, more than once, with how often."""
    paid = Counter(line["input"] for line in lines if line.get("paid"))
    return {input_: times for input_, times in paid.items() if times > 1}
