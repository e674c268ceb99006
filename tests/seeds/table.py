"""Read the table of a document, and say what is wrong with it."""

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.seeds.extract import claims, lines_of, names_in

FOLDER: Final = Path(__file__).parent
ROOT: Final = FOLDER.parent.parent
# The documents lie beside the clone, or beside the folder of all worktrees.
PLACES: Final = (ROOT.parent / "shared" / "seeds", ROOT.parent.parent / "shared" / "seeds")
LEAST_REASON: Final = 20  # characters: a reason is a sentence
TEXT_FILES: Final = (
    ".py",
    ".sql",
    ".md",
    ".txt",
    ".html",
    ".po",
    ".toml",
    ".js",
    ".css",
    ".sh",
    ".yml",
    ".yaml",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Some lines of a document: the tests that show them, or the decision that departs from them."""

    first: int
    last: int
    quote: str
    kept: tuple[str, ...]
    tests: tuple[str, ...]
    decision: str | None
    why: str | None
    other: Mapping[str, str]  # names of these lines that are kept under another name, and which

    @property
    def lines(self) -> range:
        return range(self.first, self.last + 1)

    @property
    def where(self) -> str:
        return (
            f"lines {self.first}-{self.last}"
            if self.last > self.first
            else f"line {self.first}"
        )


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one document."""

    name: str  # 003
    document: str  # its file name
    rows: Sequence[Row]

    def text(self) -> str | None:
        """The document, where it lies beside this tree."""
        found = [place / self.document for place in PLACES if (place / self.document).is_file()]
        return found[0].read_text() if found else None

    def summary(self) -> str:
        """How many lines it maps, by how many tests and decisions."""
        tests = {each for row in self.rows for each in row.tests}
        lines = sum(len(row.lines) for row in self.rows)
        decided = sum(row.decision is not None or not row.tests for row in self.rows)
        return (
            f"{self.document}: {lines} lines in {len(self.rows)} rows, {len(tests)} tests,"
            f" {decided} rows by a decision"
        )


def names() -> list[str]:
    """The documents that have a table."""
    return sorted(each.stem for each in FOLDER.glob("[0-9]*.toml"))


def documents() -> list[str]:
    """The documents that there are, where they lie beside this tree."""
    return sorted({each.name[:3] for place in PLACES for each in place.glob("[0-9]*.md")})


def read_table(name: str) -> Table:
    given = tomllib.loads((FOLDER / f"{name}.toml").read_text())
    return Table(name, given["document"], [_row(each) for each in given["row"]])


def _row(given: dict[str, Any]) -> Row:
    first, _, last = str(given["lines"]).partition("-")
    return Row(
        first=int(first),
        last=int(last or first),
        quote=given["quote"].strip("\n"),
        kept=tuple(given.get("kept", ())),
        tests=tuple(given.get("tests", ())),
        decision=given.get("decision"),
        why=given.get("why"),
        other=given.get("other", {}),
    )


def problems(table: Table) -> Iterator[str]:
    """Everything that is wrong with a table, by its lines."""
    counted = Counter(n for row in table.rows for n in row.lines)
    yield from (f"line {n}: it is in {times} rows" for n, times in counted.items() if times > 1)
    for row in table.rows:
        yield from (f"{row.where}: {each}" for each in _problems_of(row))
    text = table.text()
    if text is not None:
        yield from _compared(table, text)


def _problems_of(row: Row) -> Iterator[str]:
    if len(row.quote.splitlines()) != len(row.lines):
        yield f"its quote has {len(row.quote.splitlines())} lines"
    if not row.tests and len(row.why or "") < LEAST_REASON:
        yield "it needs `tests`, or `why` with the reason of a decision"
    if row.tests and not row.kept:
        yield "it needs `kept`: the files that keep what its tests show"
    yield from (f"{each} is not there" for each in row.kept if not (ROOT / each).exists())
    yield from (f"there is no test {each}" for each in row.tests if not has_test(each))
    if row.decision is not None and not (ROOT / row.decision).is_file():
        yield f"there is no page {row.decision}"
    if row.tests:
        tests = (each.partition("::")[0] for each in row.tests)
        places = [*row.kept, *tests, *([row.decision] if row.decision else [])]
        for name in sorted(names_in(row.quote) - set(row.other)):
            if not any(mentions(place, name) for place in places):
                yield f"neither `kept` nor `tests` mention {name}; is it kept under another name?"


def _compared(table: Table, text: str) -> Iterator[str]:
    told, lines = claims(text), lines_of(text)
    mapped = {n for row in table.rows for n in row.lines}
    yield from (
        f"line {line.number} has no row: {line.text.strip()}"
        for line in told.values()
        if line.number not in mapped
    )
    for row in table.rows:
        said = "\n".join(lines.get(n, "") for n in row.lines)
        quoted = "\n".join(each.rstrip() for each in row.quote.splitlines())
        if said.strip("\n") != quoted:
            yield f"{row.where}: the document says something else: {said!r}"


@cache
def _tests_in(path: Path) -> frozenset[str]:
    found = set()
    for each in ast.parse(path.read_text()).body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(each.name)
        if isinstance(each, ast.ClassDef):
            found |= {
                f"{each.name}::{inner.name}"
                for inner in each.body
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
            }
    return frozenset(each for each in found if each.rpartition("::")[2].startswith("test_"))


def has_test(told: str) -> bool:
    """Whether `tests/x/test_y.py::test_z` names a test of this tree."""
    path, _, test = told.partition("::")
    return (ROOT / path).is_file() and test in _tests_in(ROOT / path)


@cache
def _content(place: str) -> str:
    path = ROOT / place
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    return "\n".join(
        each.read_text() for each in files if each.is_file() and each.suffix in TEXT_FILES
    )


def mentions(place: str, name: str) -> bool:
    return name in _content(place)
