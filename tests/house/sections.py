"""Every named section of every SQL file of the source."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from retoma.db.statements import read_sections
from tests.house.files import SOURCE

ENGINE = ("retoma.engine.store.sql", "retoma.engine.query.sql", "retoma.engine.checker.sql")


class Section(NamedTuple):
    """One statement of a file. `dialect` is None where it is for both databases."""

    path: Path
    name: str
    dialect: str | None
    text: str

    @property
    def package(self) -> str:
        return ".".join(("retoma", *self.path.parent.relative_to(SOURCE).parts))

    def __str__(self) -> str:
        return f"{self.path.relative_to(SOURCE).as_posix()}:{self.name}"


@cache
def list_sections() -> list[Section]:
    """Return the sections of all files, sorted by file."""
    found = []
    for path in sorted(SOURCE.rglob("sql/*.sql")):
        _, *dialect, _ = path.name.split(".")
        found += [
            Section(path, name, dialect[0] if dialect else None, text)
            for name, text in read_sections(path.read_text(encoding="utf-8"))
        ]
    return found


def text_of(name: str, dialect: str | None = None) -> str:
    """Return the text of one section of the engine."""
    [found] = [
        each.text
        for each in list_sections()
        if each.package in ENGINE and (each.name, each.dialect) == (name, dialect)
    ]
    return found
