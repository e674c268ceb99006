"""Answers to be saved to a file: none of them can do anything when somebody opens it.

A list of any length is written to the disk page by page, and sent from there: neither a long list nor a client
that reads it slowly takes memory.
"""

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from decimal import Decimal
from functools import partial
from tempfile import TemporaryFile
from typing import Annotated, Any, BinaryIO, Final, Protocol, TypeVar
from urllib.parse import quote

from fastapi import Query
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from retoma.engine.scratch import scratch
from retoma.web.house import House
from retoma.web.request_body import BODY, RequestBody
from retoma.web.workbook import Workbook

T = TypeVar("T")

FORMULAS: Final = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
)  # with which a spreadsheet begins to calculate
PIECE: Final = 64 * 1024  # bytes that are sent at a time
# Of a house's room: two lists are made at a time, so that the reads of others find their turn.
ROOM: Final = 8 * 1024 * 1024
CSV: Final = "text/csv; charset=utf-8"
JSON: Final = "application/json"
XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MEDIA: Final = {"json": JSON, "xlsx": XLSX}  # else CSV
ENDING: Final = {"json": "json", "xlsx": "xlsx"}
SANDBOX: Final = "sandbox; default-src 'none'"


TEXT_FILE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The bytes, as text.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}

ANY_FILE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The bytes, as they came.",
        "content": {
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
        },
    }
}


AsFile = Annotated[
    str,
    Query(
        alias="format",
        pattern="^(csv|excel|json|xlsx)$",
        description="`csv`, `json`, `xlsx`, or `excel`: a CSV with semicolons and decimal commas.",
    ),
]


Pages = AsyncIterator[Sequence[Any]]


async def listed_file(
    house: House, as_: str, name: str, headings: Sequence[str], pages: Pages
) -> Response:
    """Return all of them in the form that is asked for: with every field, or as a table with these."""
    async with house.room.hold(ROOM):
        file = await written_list(as_, headings, pages, house.settings.timezone)
    return StoredFile(file, _headers(f"{name}.{ENDING.get(as_, 'csv')}", MEDIA.get(as_, CSV)))


async def written_list(
    as_: str, headings: Sequence[str], pages: Pages, timezone: str
) -> BinaryIO:
    """Return a file that goes when it is closed. `timezone` is that of the times in an XLSX file."""
    return await written_by(lambda file: _listing_of(as_, file, headings, timezone), pages)


async def saved_list(
    house: House, name: str, media: str, make: "Callable[[BinaryIO], Listing]", pages: Pages
) -> Response:
    """Return all of them in a form of the caller's own, to be saved under this name."""
    async with house.room.hold(ROOM):
        file = await written_by(make, pages)
    return StoredFile(file, _headers(name, media))


async def written_by(make: "Callable[[BinaryIO], Listing]", pages: Pages) -> BinaryIO:
    """Return a file that goes when it is closed, with what the listing makes of the pages."""
    file: BinaryIO = await _in_thread(_new_file)
    try:
        listing = await _in_thread(make, file)
        async for page in pages:
            await _in_thread(listing.add, page)
        await _in_thread(listing.end)
        await _in_thread(file.seek, 0)
    except BaseException:
        file.close()
        raise
    return file


def _new_file() -> BinaryIO:
    return TemporaryFile(dir=scratch())


class Listing(Protocol):
    """Writes a list page by page."""

    def add(self, page: Sequence[Any]) -> None: ...

    def end(self) -> None: ...


def _listing_of(as_: str, file: BinaryIO, headings: Sequence[str], timezone: str) -> Listing:
    match as_:
        case "json":
            return _Json(file)
        case "xlsx":
            return Workbook(file, headings, timezone)
        case "excel":
            return _Table(file, headings, _local_cell, ";", "utf-8-sig")
        case _:
            return _Table(file, headings, cell, ",", "utf-8")


class _Json:
    """Every field of every line."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._before = b"["

    def add(self, page: Sequence[Any]) -> None:
        for each in page:
            told = each.model_dump(mode="json")
            text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
            self._file.write(self._before + text.encode())
            self._before = b","

    def end(self) -> None:
        self._file.write(b"[]" if self._before == b"[" else b"]")


class _Table:
    """Some fields of every line, with commas or as a spreadsheet that is set up as in Brazil has them."""

    def __init__(
        self,
        file: BinaryIO,
        headings: Sequence[str],
        told: Callable[[Any], str],
        delimiter: str,
        encoding: str,
    ) -> None:
        self._file = file
        self._headings = headings
        self._told = told
        self._delimiter = delimiter
        file.write(_lines([headings], str, delimiter).encode(encoding))

    def add(self, page: Sequence[Any]) -> None:
        rows = ([getattr(each, heading) for heading in self._headings] for each in page)
        self._file.write(_lines(rows, self._told, self._delimiter).encode())

    def end(self) -> None:
        """It has none."""


class StoredFile(Response):
    """Sends a file in pieces and closes it: what a slow client has not read yet stays on the disk."""

    def __init__(self, file: BinaryIO, headers: dict[str, str]) -> None:
        self._size = file.seek(0, io.SEEK_END)
        file.seek(0)
        super().__init__(headers={**headers, "Content-Length": str(self._size)})
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 — as ASGI calls it
        body: RequestBody | None = scope.get(BODY)
        if body is not None:
            body.prolong(self._size)
        try:
            start = {"type": "http.response.start", "status": self.status_code}
            await send({**start, "headers": self.raw_headers})
            left = self._size
            if not left:  # an empty body must end too
                await send({"type": "http.response.body", "body": b""})
            while left:
                piece = await _in_thread(self._file.read, PIECE)
                left -= len(piece)
                await send(
                    {"type": "http.response.body", "body": piece, "more_body": bool(left)}
                )
        finally:
            self._file.close()


class Pieces(Response):
    """Sends bytes that are shared by all who ask: a client that does not read holds one piece, not all of them."""

    def __init__(self, content: bytes, media: str) -> None:
        super().__init__(headers={"Content-Type": media, "Content-Length": str(len(content))})
        self._content = memoryview(content)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 — as ASGI calls it
        body: RequestBody | None = scope.get(BODY)
        if body is not None:
            body.prolong(len(self._content))
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        for at in range(0, len(self._content), PIECE):
            piece = bytes(self._content[at : at + PIECE])
            more = at + PIECE < len(self._content)
            await send({"type": "http.response.body", "body": piece, "more_body": more})


async def _in_thread(work: Callable[..., T], *args: object) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, partial(work, *args))


def text_file(name: str, content: bytes) -> Response:
    return _saved(name, content, "text/plain; charset=utf-8")


def csv_file(name: str, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> Response:
    """A table of which there is little."""
    content = _lines([headings], str, ",") + _lines(rows, cell, ",")
    return _saved(name, content.encode(), CSV)


def _lines(rows: Iterable[Sequence[Any]], told: Callable[[Any], str], delimiter: str) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows([told(each) for each in row] for row in rows)
    return out.getvalue()


def csv_line(values: Sequence[Any]) -> bytes:
    """One line of a table in which nothing is a formula."""
    return _lines([values], cell, ",").encode()


def saved_stream(name: str, size: int | None, pieces: AsyncIterator[bytes]) -> Response:
    """Bytes of anybody, to be saved under a name of anybody's: a browser neither shows nor runs them."""
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name.rpartition('/')[2], safe='')}",
        "Content-Security-Policy": SANDBOX,
        "X-Content-Type-Options": "nosniff",
    }
    if size is not None:
        headers["Content-Length"] = str(size)
    return StreamingResponse(pieces, headers=headers, media_type="application/octet-stream")


def csv_of(what: str) -> dict[int | str, dict[str, Any]]:
    return {
        200: {
            "description": f"A table of {what}.",
            "content": {"text/csv": {"schema": {"type": "string"}}},
        }
    }


def list_of(what: str) -> dict[int | str, dict[str, Any]]:
    """Where `format` says what it is."""
    told = csv_of(what)
    told[200]["content"] |= {
        JSON: {"schema": {"type": "array"}},
        XLSX: {"schema": {"type": "string", "format": "binary"}},
    }
    return told


def cell(value: Any) -> str:
    """As text; what would be a formula is marked as none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()  # as JSON has it
    text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    is_number = isinstance(value, int | float | Decimal)
    return f"'{text}" if text.startswith(FORMULAS) and not is_number else text


def _local_cell(value: Any) -> str:
    if isinstance(value, bool):
        return "sim" if value else "não"
    return cell(value).replace(".", ",") if isinstance(value, float | Decimal) else cell(value)


def _saved(name: str, content: bytes, media: str) -> Response:
    return Response(content, headers=_headers(name, media))


def _headers(name: str, media: str) -> dict[str, str]:
    return {
        "Content-Type": media,
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Security-Policy": SANDBOX,
    }
