"""Answers to be saved to a file: none of them can do anything when somebody opens it."""

import csv
import io
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import Query
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response, StreamingResponse

from retoma.web.workbook import write_workbook

FORMULAS: Final = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
)  # with which a spreadsheet begins to calculate
XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
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


def listed_file(
    as_: str,
    name: str,
    headings: Sequence[str],
    told: Sequence[BaseModel],
    *,
    timezone: str = "UTC",
) -> Response:
    """Return all of them in the form that is asked for: with every field, or as a table with these.

    `timezone` is that of the times in an XLSX file.
    """
    if as_ == "json":
        return JSONResponse([each.model_dump(mode="json") for each in told])
    rows = ([getattr(each, heading) for heading in headings] for each in told)
    if as_ == "xlsx":
        return _saved(f"{name}.xlsx", write_workbook(headings, rows, timezone), XLSX)
    table = excel_file if as_ == "excel" else csv_file
    return table(f"{name}.csv", headings, rows)


def text_file(name: str, content: bytes) -> Response:
    return _saved(name, content, "text/plain; charset=utf-8")


def csv_file(name: str, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> Response:
    return _table(name, headings, rows, cell, ",", "utf-8")


def excel_file(name: str, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> Response:
    """The same for a spreadsheet that is set up as in Brazil, where a comma is the decimal sign."""
    return _table(name, headings, rows, _local_cell, ";", "utf-8-sig")


def csv_line(values: Sequence[Any]) -> bytes:
    """One line of a table in which nothing is a formula."""
    out = io.StringIO()
    csv.writer(out).writerow([cell(each) for each in values])
    return out.getvalue().encode()


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


def _table(
    name: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[Any]],
    told: Callable[[Any], str],
    delimiter: str,
    encoding: str,
) -> Response:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(headings)
    writer.writerows([told(each) for each in row] for row in rows)
    return _saved(name, out.getvalue().encode(encoding), "text/csv; charset=utf-8")


def csv_of(what: str) -> dict[int | str, dict[str, Any]]:
    return {
        200: {
            "description": f"A table of {what}.",
            "content": {"text/csv": {"schema": {"type": "string"}}},
        }
    }


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
    return Response(
        content,
        headers={
            "Content-Type": media,
            "Content-Disposition": f'attachment; filename="{name}"',
            "Content-Security-Policy": SANDBOX,
        },
    )
