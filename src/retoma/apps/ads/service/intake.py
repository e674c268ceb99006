"""What people paste: proxies, workers, writers and missions line by line, as a table or in the forms
vendors use. Pure: text in, fields or a reason by line out. What stands in a line is never told back."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from retoma.engine.rules.errors import BadInput
from retoma.words import Said, say

MOST: Final = 1_000  # lines at a time
LONGEST: Final = 64 * 1024  # characters at a time
SEPARATORS: Final = (",", ";", "\t")
SCHEME: Final = re.compile(r"^(https?|socks5h?)://", re.IGNORECASE)


class Intake(StrEnum):
    """What may be pasted."""

    PROXIES = "proxies"
    WORKERS = "workers"
    WRITERS = "writers"
    MISSIONS = "missions"


# The columns of a table, in the order in which they stand where nobody names them.
COLUMNS: Final[Mapping[Intake, Sequence[str]]] = {
    Intake.PROXIES: ("host", "port", "username", "password", "name", "vendor"),
    Intake.WORKERS: ("name", "url", "api_key", "storage_domain"),
    Intake.WRITERS: ("name", "url", "api_key"),
    Intake.MISSIONS: ("date_start", "date_end", "media_type", "languages"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line: what it says by name, or why it says nothing."""

    number: int
    fields: Mapping[str, str] = field(default_factory=dict, repr=False)
    why: Said | None = None


def read(what: Intake, text: str) -> list[Line]:
    """Every line that says something; blank ones and those that begin with # do not."""
    if len(text) > LONGEST:
        raise BadInput(say("more than {most} characters at a time", most=LONGEST))
    if "\0" in text:
        raise BadInput(say("has a NUL character"))
    told = [
        (number, line.strip())
        for number, line in enumerate(text.replace("\ufeff", "").splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if len(told) > MOST:
        raise BadInput(say("more than {most} lines at a time", most=MOST))
    if not told:
        raise BadInput(say("nothing is there to be read"))
    return list(_read(what, told))


def _read(what: Intake, told: Sequence[tuple[int, str]]) -> Iterator[Line]:
    names = _heading(what, told[0][1])
    columns = COLUMNS[what] if names is None else names
    for number, line in told if names is None else told[1:]:
        separator = _separator(line)
        if separator is None and what is Intake.PROXIES:
            yield _proxy(number, line)
        else:
            yield _row(number, line, separator or ",", columns)


def _heading(what: Intake, line: str) -> list[str] | None:
    """The names of columns, where the first line is that."""
    cells = [cell.strip().lower() for cell in _cells(line, _separator(line) or ",")]
    known = set(COLUMNS[what])
    if not known & set(cells):
        return None
    strange = [cell for cell in cells if cell not in known]
    if strange or len(set(cells)) < len(cells):
        raise BadInput(
            say(
                "the first line names columns, each once, of: {known}",
                known=", ".join(COLUMNS[what]),
            )
        )
    return cells


def _separator(line: str) -> str | None:
    return next((each for each in SEPARATORS if each in line), None)


def _cells(line: str, separator: str) -> list[str]:
    [cells] = csv.reader([line], delimiter=separator)
    return cells


def _row(number: int, line: str, separator: str, columns: Sequence[str]) -> Line:
    try:
        cells = [cell.strip() for cell in _cells(line, separator)]
    except (csv.Error, ValueError):
        return Line(number, why=say("cannot be read as a row of a table"))
    if len(cells) > len(columns):
        return Line(number, why=say("has more than {n} columns", n=len(columns)))
    told = dict(zip(columns, cells, strict=False))
    return Line(number, {name: cell for name, cell in told.items() if cell})


def _proxy(number: int, line: str) -> Line:
    """host, host:port, host:port:user:password or user:password@host:port."""
    plain = SCHEME.sub("", line)
    user, at, place = plain.rpartition("@")
    if at:
        name, colon, password = user.partition(":")
        host, _, port = place.partition(":")
        told = {"host": host, "port": port, "username": name, "password": password}
        if not (colon and name and password):
            return Line(number, why=say("is no user:password@host:port"))
    else:
        host, port, name, password = (*plain.split(":", 3), "", "", "")[:4]
        told = {"host": host, "port": port, "username": name, "password": password}
        if bool(name) != bool(password):
            return Line(number, why=say("is no host:port:user:password"))
    return Line(number, {name: value for name, value in told.items() if value})
