"""What a fault is put at: every statement and every file operation of a scenario, by its name."""

import re
from functools import cache
from typing import NamedTuple

from retoma.db import statement
from retoma.db.statements import sections

PARAMETER = re.compile(r"%\(\w+\)s|\$\d+")
FOLDERS = ("retoma.engine.store.sql", "retoma.engine.query.sql", "retoma.engine.checker.sql")


class Place(NamedTuple):
    """The n-th time that a lane sends a statement, or that an operation is done on a file."""

    lane: str
    name: str
    n: int

    def __str__(self) -> str:
        return f"{self.lane}/{self.name}#{self.n}"

    @classmethod
    def parse(cls, text: str) -> "Place":
        lane, _, rest = text.partition("/")
        name, _, n = rest.rpartition("#")
        return cls(lane, name, int(n))


@cache
def names(dialect: str) -> dict[str, str]:
    """The name of each statement of the engine, by its text."""
    found: dict[str, str] = {}
    for folder in FOLDERS:
        for verb in sorted(sections(folder)):
            texts = getattr(statement(folder, verb), dialect)
            for place, text in enumerate(texts, start=1):
                called = verb if len(texts) == 1 else f"{verb}.{place}"
                found.setdefault(plain(text.sql), called)
    return found


def name_of(dialect: str, sql: str) -> str:
    """The verb that the statement belongs to; else its first words."""
    text = plain(sql)
    known = names(dialect).get(text)
    if known is not None:
        return known
    words = re.sub(r"\s+", " ", re.sub(r"--[^\n]*", " ", text)).strip().split(" ")
    first = "_".join(words[: 3 if words[0] in ("PRAGMA", "CREATE", "ALTER") else 2])
    return re.sub(r"\W+", "_", first).strip("_")[:40]


def plain(sql: str) -> str:
    """A text that is the same however its parameters are written."""
    return PARAMETER.sub("?", sql).replace("%%", "%").strip()
