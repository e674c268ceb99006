"""Change one function or one SQL statement in a copy of the source; fail where it is not as it was."""

import ast
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.house.sections import ENGINE, Section, list_sections

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
PACKAGE = "retoma"

MIGRATIONS = "migrations"  # packages whose files are SQL
SQL = "sql"  # a section of the engine's SQL, or of another package: retoma.apps.documents.sql

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Stale(Exception):
    """An edit does not apply any more: its function, its statement or its text is not there."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `old` by `new`, once, inside of one function or one statement.

    `where`: `retoma.engine.rules.retry:backoff`, `retoma.engine.run.heartbeat:Heartbeat.beat`, a constant
    (`retoma.engine.handlers.steps:NAME`) or a section of SQL
    of the engine, wherever it stands (`sql:settle_jobs.sqlite`, `sql:beat_runner`), or a migration.
    """

    where: str
    old: str
    new: str

    @property
    def path(self) -> Path:
        """The file, below the folder of the source."""
        module, _, name = self.where.partition(":")
        if module.rpartition(".")[2] == SQL:
            return self._section().path.relative_to(SOURCE)
        folder = Path(*module.split("."))
        if folder.name == MIGRATIONS:
            return folder / f"{name}.sql"
        package = folder / "__init__.py"
        return package if (SOURCE / package).is_file() else folder.with_suffix(".py")

    def _section(self) -> Section:
        module, _, section = self.where.partition(":")
        name, _, dialect = section.partition(".")
        packages = ENGINE if module == SQL else (module,)
        found = [
            each
            for each in list_sections()
            if each.package in packages and (each.name, each.dialect) == (name, dialect or None)
        ]
        if len(found) != 1:
            raise Stale(f"{self.where}: there are {len(found)} such sections, not one")
        return found[0]

    def apply(self, text: str) -> str:
        """The text of the file with the edit in it."""
        _, _, name = self.where.partition(":")
        if self.where.partition(":")[0].rpartition(".")[2] == SQL:
            start, end = _span_of_section(text, name.partition(".")[0], self.where)
        elif self.path.suffix == ".sql":
            start, end = 0, len(text)
        else:
            start, end = _span_of(text, name, self.where)
        part = text[start:end]
        if part.count(self.old) != 1:
            raise Stale(
                f"{self.where}: {self.old!r} is there {part.count(self.old)} times, not once;"
                " the code has changed: write the edit anew in tests/mutants/catalog.py"
            )
        changed = text[:start] + part.replace(self.old, self.new) + text[end:]
        if self.path.suffix == ".py":
            compile(changed, str(self.path), "exec")
        return changed


def apply_all(edits: Iterable[Edit], source: Path = SOURCE) -> dict[Path, str]:
    """What the edited files say then, by their path below the source."""
    changed: dict[Path, str] = {}
    for edit in edits:
        if edit.path not in changed:
            try:
                changed[edit.path] = (source / edit.path).read_text(encoding="utf-8")
            except FileNotFoundError:
                raise Stale(f"{edit.where}: there is no file {edit.path}") from None
        changed[edit.path] = edit.apply(changed[edit.path])
    return changed


class Tree:
    """A copy of the source that a process imports in place of the checkout's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # With what is compiled: times are kept, so it is taken as it is.
        shutil.copytree(SOURCE / PACKAGE, folder / PACKAGE)

    @contextmanager
    def changed(self, edits: Iterable[Edit]) -> Iterator[None]:
        """The tree with these edits in it; afterwards it is as it was."""
        before: dict[Path, bytes] = {}
        try:
            for path, text in apply_all(edits, self.folder).items():
                file = self.folder / path
                before[file] = file.read_bytes()
                _write(file, text.encode())
            yield
        finally:
            for file, content in before.items():
                _write(file, content)


def _write(file: Path, content: bytes) -> None:
    """Compiled code is known by the second and the size of its source: that is not enough here."""
    file.write_bytes(content)
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()


def _span_of_section(text: str, name: str, where: str) -> tuple[int, int]:
    """Return where a section of SQL begins and ends in its file."""
    start = text.find(f"-- name: {name}\n")
    if start < 0:
        raise Stale(f"{where}: its file has no such section")
    end = text.find("-- name: ", start + 1)
    return start, end if end > 0 else len(text)


def _span_of(text: str, name: str, where: str) -> tuple[int, int]:
    """Where a definition begins and ends in its file, by its qualified name."""
    node: ast.AST = ast.parse(text)
    for part in name.split("."):
        found = [each for each in _children(node) if part in _names(each)]
        if len(found) != 1:
            raise Stale(f"{where}: {part!r} is defined {len(found)} times, not once")
        node = found[0]
    assert isinstance(node, ast.stmt)
    lines = text.splitlines(keepends=True)
    decorators = node.decorator_list if isinstance(node, Definition) else []
    first = min([node.lineno, *(each.lineno for each in decorators)])
    assert node.end_lineno is not None
    return sum(map(len, lines[: first - 1])), sum(map(len, lines[: node.end_lineno]))


def _children(node: ast.AST) -> list[ast.stmt]:
    return getattr(node, "body", [])


def _names(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Assign():
            return [each.id for each in node.targets if isinstance(each, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []
