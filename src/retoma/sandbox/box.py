"""One door for every site: what may go wrong happens here, and who came is written down.

Below `/_sandbox/` a test may ask for trouble (`POST faults`), end it (`DELETE faults`) and read
what came (`GET log`).
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retoma.engine.errors import BadInput
from retoma.engine.ports import Clock
from retoma.sandbox.faults import Fault, Faults, Trouble

ADMIN: Final = "/_sandbox/"
LARGEST: Final = 64 * 1024  # bytes of a wish for trouble
# How the proxies of the sandbox say who they are (RFC 7239).
BY: Final = re.compile(r"by=_([A-Za-z0-9_-]{1,64})")


class _Cut(Exception):
    """Here the connection breaks."""


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
    ) -> None:
        self._site = site
        self._faults = faults
        self._clock = clock or Clock()
        self._log = Log(self._clock, log_file)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        if path.startswith(ADMIN):
            answer = await self._asked(scope, receive)
            await answer(scope, receive, send)
            return
        proxy = proxy_of(_headers(scope))
        fault = self._faults.next(proxy, path)
        told = {
            "proxy": proxy,
            "path": path,
            "query": scope["query_string"].decode("latin-1"),
            "fault": None if fault is None else str(fault.trouble),
        }
        await self._fared(fault, told, scope, receive, send)

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
                self._log.tell(**told, status=fault.status)
                await _refusal(fault)(scope, receive, send)
            case Trouble.HANG:
                self._log.tell(**told, status=None)
                while (await receive())["type"] != "http.disconnect":
                    pass
            case trouble:
                if fault is not None and trouble is Trouble.SLOW:
                    await self._clock.sleep(fault.seconds)
                cut = trouble is Trouble.CUT
                with suppress(
                    _Cut
                ):  # a server drops the connection of an answer without an end
                    await self._site(scope, receive, _telling(self._log, told, send, cut=cut))

    # — what a test asks for —

    async def _asked(self, scope: Scope, receive: Receive) -> Response:
        match scope["method"], scope["path"].removeprefix(ADMIN):
            case "GET", "log":
                after = scope["query_string"].decode("latin-1").partition("after=")[2]
                return JSONResponse(self._log.read(int(after) if after.isdigit() else 0))
            case "POST", "faults":
                return await self._arm(receive)
            case "DELETE", "faults":
                self._faults.clear()
                return Response(status_code=204)
            case _:
                return JSONResponse({"error": "not found"}, status_code=404)

    async def _arm(self, receive: Receive) -> Response:
        try:
            told = json.loads(await _body(receive))
            if not isinstance(told, dict):
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
    headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
    text = f"<!doctype html><title>{fault.status}</title><p>Not now."
    return Response(text, fault.status, headers, media_type="text/html")


def _telling(log: Log, told: dict[str, Any], send: Send, *, cut: bool) -> Send:
    async def telling(message: Message) -> None:
        if message["type"] == "http.response.start":
            log.tell(**told, status=message["status"])
        elif cut:
            half = message.get("body", b"")[: len(message.get("body", b"")) // 2]
            await send({**message, "body": half, "more_body": True})
            raise _Cut
        await send(message)

    return telling


async def _body(receive: Receive) -> bytes:
    parts: bytes = b""
    while len(parts) <= LARGEST:
        message = await receive()
        parts += message.get("body", b"")
        if not message.get("more_body", False):
            return parts
    raise BadInput
