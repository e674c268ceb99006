"""Read SQL from files of named sections, one file for each store module.

`sql/claim.sql` has what runs on both databases; `sql/claim.sqlite.sql` and `sql/claim.postgres.sql` have
the sections that must differ. A section begins with `-- name: claim_jobs`; the line under it says what the
statement promises. It may hold several statements, each ended by a semicolon and an empty line: they run in
order with the same `:named` parameters, and the last one that returns rows gives the answer.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

DIALECTS = ("sqlite", "postgres")

_SECTION = re.compile(r"^-- name: ([a-z0-9_]+)\n", re.MULTILINE)
_BETWEEN = re.compile(r";[ \t]*\n(?:[ \t]*\n)+")
# What is not a parameter is matched first: strings, names in quotes, comments, casts. A lone `%`
# means itself.
_MARK = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$.*?\$\1\$|--[^\n]*|/\*.*?\*/|::"""
    r"""|:(?P<name>[a-z_][a-z0-9_]*)|%""",
    re.IGNORECASE | re.DOTALL,
)
_RETURNING = re.compile(r"\breturning\b", re.IGNORECASE)
_LOCKING = re.compile(
    r"\bfor\s+(no\s+key\s+)?update\b", re.IGNORECASE
)  # a question all the same
_CHANGES = re.compile(r"\b(insert|update|delete|create|drop|alter|set)\b", re.IGNORECASE)


class Text(NamedTuple):
    """One statement of a verb, and whether it gives rows."""

    sql: str
    answers: bool


@dataclass(frozen=True, slots=True, eq=False)  # looked up by identity, which costs nothing
class Statement:
    """One verb, ready for each database."""

    name: str
    sqlite: tuple[Text, ...]
    postgres: tuple[Text, ...]


@cache
def statement(package: str, name: str) -> Statement:
    """Return the statement `name` of the folder `package` (`retoma.engine.store.sql`)."""
    found = sections(package).get(name, {})
    shared = found.get(None)
    texts = [found.get(dialect, shared) for dialect in DIALECTS]
    if None in texts:
        raise FileNotFoundError(
            f"{package} has no section `-- name: {name}` for both databases"
        )
    sqlite, postgres = (text or "" for text in texts)
    return adhoc(sqlite, postgres, name=name)


class Statements:
    """The statements of a folder by their names: `SQL.list_people`; each is read at its first use."""

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Statement:
        try:
            found = statement(self._package, name)
        except FileNotFoundError as error:
            raise AttributeError(str(error)) from error
        setattr(self, name, found)
        return found


@cache
def sections(package: str) -> Mapping[str, Mapping[str | None, str]]:
    """Return the sections of a folder by name and dialect; None is the dialect of both databases."""
    found: dict[str, dict[str | None, str]] = {}
    for file in resources.files(package).iterdir():
        if not file.name.endswith(".sql"):
            continue
        _, *dialect, _ = file.name.split(".")
        for name, text in read_sections(file.read_text(encoding="utf-8")):
            texts = found.setdefault(name, {})
            key = dialect[0] if dialect else None
            if key in texts:
                raise ValueError(f"{package} has two sections `-- name: {name}`")
            texts[key] = text
    return found


def read_sections(text: str) -> list[tuple[str, str]]:
    """Split the text of a file into its sections: (name, text)."""
    _, *parts = _SECTION.split(text)
    return list(zip(parts[::2], parts[1::2], strict=True))


def adhoc(sqlite: str, postgres: str | None = None, *, name: str = "adhoc") -> Statement:
    """A statement that need not be a file: migrations, set-up, what a caller of ours writes."""
    return Statement(
        name=name,
        sqlite=tuple(Text(text, _answers(text)) for text in split(sqlite)),
        postgres=tuple(
            Text(pyformat(text), _answers(text)) for text in split(postgres or sqlite)
        ),
    )


def split(text: str) -> tuple[str, ...]:
    """The statements of a file, without what stands around them."""
    parts = (part.strip().removesuffix(";") for part in _BETWEEN.split(text))
    return tuple(part for part in parts if _says_something(part))


def pyformat(text: str) -> str:
    """`:name` as psycopg writes it; strings and comments are left alone but for `%`."""

    def mark(found: re.Match[str]) -> str:
        if found["name"]:
            return f"%({found['name']})s"
        return found[0].replace("%", "%%")

    return _MARK.sub(mark, text)


def verbatim(text: str) -> Statement:
    """A caller's one statement: nothing in it is split."""
    return Statement(
        "caller", (Text(text, answers=True),), (Text(pyformat(text), answers=True),)
    )


def parameters(text: str) -> set[str]:
    """The names a statement wants values for."""
    return {found["name"] for found in _MARK.finditer(text) if found["name"]}


def bare(text: str) -> str:
    """A statement without its strings, quoted names, comments and parameters."""
    return _MARK.sub(" ", text)


def _answers(text: str) -> bool:
    plain = _LOCKING.sub("", _MARK.sub("", text))
    return bool(_RETURNING.search(plain)) or not _CHANGES.search(plain)


def _says_something(text: str) -> bool:
    return any(line.strip() and not line.strip().startswith("--") for line in text.split("\n"))
