"""One door for every site: what may go wrong happens here, and who came is written down.

Below `/_sandbox/` a test may ask for trouble (`POST faults`), end it (`DELETE faults`), read what
came (`GET log`) and what has come and is not answered yet (`GET open`).
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Final

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retoma.engine.errors import BadInput
from retoma.engine.ports import Clock
from retoma.sandbox.faults import Fault, Faults, Trouble

ADMIN: Final = "/_sandbox/"
LARGEST: Final = 64 * 1024  # bytes of a wish for trouble
OK: Final = 200
LARGEST_REQUEST: Final = 32 * 1024 * 1024  # bytes of a request whose service looks at its body
TOO_LARGE: Final = Fault(trouble=Trouble.STATUS, status=413)
# How the proxies of the sandbox say who they are (RFC 7239).
BY: Final = re.compile(r"by=_([A-Za-z0-9_-]{1,64})")


class _Cut(Exception):
    """Here the connection breaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, as it is looked at before anybody answers it."""

    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def text(self) -> str:
        """All that a fault may be about."""
        return f"{self.path}?{self.query}\n{self.body.decode(errors='replace')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a service refuses, how long it takes, what its log says of a request, what it charges."""

    refusal: Callable[[Fault], Response] | None = None  # None: a page
    notes: Callable[[Asked], Mapping[str, Any]] | None = None  # None: bodies are not read
    seconds: Callable[[Asked], float] | None = None
    paid: bool = False  # whether an answer costs money; a refusal never does
    free: tuple[str, ...] = ()  # paths below which it never does


def paced(
    seed: int, pace: float, latency: tuple[float, float]
) -> Callable[[Asked], float] | None:
    """How long a service takes: the same for the same request, `pace` times what the real one does."""
    if pace == 0:
        return None

    def seconds(asked: Asked) -> float:
        chance = Random(f"{seed}:{asked.text}")  # noqa: S311 — a world, not a secret
        return pace * chance.uniform(*latency)

    return seconds


class Log:
    """Every request in its order, one line each, written before it is answered."""

    def __init__(self, clock: Clock, file: Path | None = None) -> None:
        self._clock = clock
        self._file = file
        self._lines: list[dict[str, Any]] = []

    def tell(self, **what: Any) -> None:
        line = {"n": len(self._lines) + 1, "at": self._clock.wall(), **what}
        self._lines.append(line)
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")

    def read(self, after: int) -> list[dict[str, Any]]:
        return self._lines[after:]


class Box:
    """A site, its faults and its log, as one application."""

    def __init__(
        self,
        site: ASGIApp,
        faults: Faults,
        *,
        clock: Clock | None = None,
        log_file: Path | None = None,
        manner: Manner | None = None,
    ) -> None:
        self._site = site
        self._faults = faults
        self._clock = clock or Clock()
        self._manner = manner or Manner()
        self.log = Log(self._clock, log_file)
        self._open: dict[int, Mapping[str, Any]] = {}  # by the scope of each

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"].startswith(ADMIN):
            answer = await self._asked(scope, receive)
            await answer(scope, receive, send)
            return
        asked, receive = await self._read(scope, receive)
        proxy = proxy_of(asked.headers)
        fault = self._faults.next(proxy, asked.path, asked.text)
        if len(asked.body) > LARGEST_REQUEST:
            fault = TOO_LARGE
        told = {
            "proxy": proxy,
            "path": asked.path,
            "query": asked.query,
            "fault": None if fault is None else str(fault.trouble),
            **(self._manner.notes(asked) if self._manner.notes else {}),
        }
        self._open[id(scope)] = told
        try:
            if self._manner.seconds is not None:
                told["seconds"] = self._manner.seconds(asked)
                await self._clock.sleep(told["seconds"])
            await self._fared(fault, told, scope, receive, send)
        finally:
            del self._open[id(scope)]

    async def _read(self, scope: Scope, receive: Receive) -> tuple[Asked, Receive]:
        """The request, and its body once more for the site."""
        asked = Asked(
            path=scope["path"],
            query=scope["query_string"].decode("latin-1"),
            headers=_headers(scope),
        )
        if self._manner.notes is None:
            return asked, receive
        body = await _body(receive, LARGEST_REQUEST)
        return replace(asked, body=body), _again(body, receive)

    async def _fared(
        self,
        fault: Fault | None,
        told: dict[str, Any],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """As the fault has it."""
        match None if fault is None else fault.trouble:
            case Trouble.STATUS:
                assert fault is not None  # noqa: S101 — for the reader of types
                self.log.tell(**told, status=fault.status)
                refusal = self._manner.refusal or _refusal
                answer = refusal(fault)
                if fault.retry_after is not None:
                    answer.headers["Retry-After"] = str(fault.retry_after)
                await answer(scope, receive, send)
            case Trouble.HANG:
                self.log.tell(**told, status=None)
                while (await receive())["type"] != "http.disconnect":
                    pass
            case trouble:
                if fault is not None and trouble is Trouble.SLOW:
                    await self._clock.sleep(fault.seconds)
                if trouble is Trouble.HOLD:
                    await self._faults.peace()
                cut = trouble is Trouble.CUT
                with suppress(
                    _Cut
                ):  # a server drops the connection of an answer without an end
                    await self._site(scope, receive, self._telling(told, send, cut=cut))

    def _telling(self, told: dict[str, Any], send: Send, *, cut: bool) -> Send:
        async def telling(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                free = str(told["path"]).startswith(self._manner.free or ("\0",))
                paid = {"paid": status == OK and not free} if self._manner.paid else {}
                self.log.tell(**told, **paid, status=status)
            elif cut:
                half = message.get("body", b"")[: len(message.get("body", b"")) // 2]
                await send({**message, "body": half, "more_body": True})
                raise _Cut
            await send(message)

        return telling

    # — what a test asks for —

    async def _asked(self, scope: Scope, receive: Receive) -> Response:
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
            told = json.loads(body := await _body(receive, LARGEST))
            if len(body) > LARGEST or not isinstance(told, dict):
                raise BadInput  # noqa: TRY301 — answered below, as any other
            self._faults.arm(Fault.of(told))
        except (ValueError, BadInput) as error:
            return JSONResponse({"error": str(error)}, status_code=422)
        return Response(status_code=204)


def proxy_of(headers: Mapping[str, str]) -> str | None:
    """Through which proxy a request came; None: through none."""
    found = BY.search(headers.get("forwarded", ""))
    return None if found is None else found[1]


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _refusal(fault: Fault) -> Response:
    text = f"<!doctype html><title>{fault.status}</title><p>Not now."
    return Response(text, fault.status, media_type="text/html")


async def _body(receive: Receive, most: int) -> bytes:
    """What was sent; of more than `most` bytes only the beginning, a little longer than that."""
    parts = bytearray()
    while len(parts) <= most:
        message = await receive()
        parts += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return bytes(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    left = [body]

    async def again() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return again
