"""SQL lives in files named by their verb; this reads them.

`claim_jobs.sql` is for both databases; `claim_jobs.sqlite.sql` and `claim_jobs.postgres.sql` are
twins, where the two must differ. A file may hold several statements, each ended by a semicolon
and an empty line; they run in order with the same `:named` parameters, and the last one that
returns rows gives the answer.
"""

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

DIALECTS = ("sqlite", "postgres")

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


@dataclass(frozen=True, slots=True)
class Statement:
    """One verb, ready for each database."""

    name: str
    sqlite: tuple[Text, ...]
    postgres: tuple[Text, ...]


@cache
def statement(package: str, name: str) -> Statement:
    """The verb `name` of the folder `package` (`retoma.engine.sql`)."""
    sqlite, postgres = (_read(package, name, dialect) for dialect in DIALECTS)
    return adhoc(sqlite, postgres, name=name)


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


def _read(package: str, name: str, dialect: str) -> str:
    folder = resources.files(package)
    for file in (folder / f"{name}.sql", folder / f"{name}.{dialect}.sql"):
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise FileNotFoundError(f"no SQL for the verb {name} on {dialect} in {package}")
