"""Every statement that is read into a class has the columns of its fields, by number and by name."""

import ast
import builtins
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, get_type_hints

import apsw.ext
import pytest
from psycopg._queries import PostgresQuery
from psycopg.adapt import Transformer

from retoma import db
from retoma.db import migrations, rows
from retoma.db.statements import Statement, Statements
from tests.house.files import SOURCE
from tests.house.sections import list_sections
from tests.house.test_sql_prepares import TEMP_TABLE, parameters, rooms

READS = ("one", "all")


class Read(NamedTuple):
    """One place where rows become objects."""

    where: str
    statement: Statement
    into: type


def modules() -> Iterator[tuple[str, Any, ast.Module]]:
    """Return the name of every module that names statements, the module and its text."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        if "SQL" in text or "into=" in text:
            name = ".".join(("retoma", *path.relative_to(SOURCE).with_suffix("").parts))
            yield name, import_module(name.removesuffix(".__init__")), ast.parse(text)


@cache
def find_reads() -> list[Read]:
    """Return every `tx.all(STATEMENT, into=Class)` whose names the module itself has."""
    return list(_find_reads())


def _find_reads() -> Iterator[Read]:
    for name, module, tree in modules():
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                into = next((each.value for each in call.keywords if each.arg == "into"), None)
                if call.func.attr in READS and into is not None:
                    statement = named(module, call.args[0])
                    shape = named(module, into)
                    if isinstance(statement, Statement) and isinstance(shape, type):
                        yield Read(f"{name}:{call.lineno}", statement, shape)


def named(module: Any, node: ast.expr) -> Any:
    """Return what a name, or a name of a module, stands for."""
    if isinstance(node, ast.Attribute):
        return getattr(named(module, node.value), node.attr, None)
    if isinstance(node, ast.Name):
        return getattr(module, node.id, getattr(builtins, node.id, None))
    return None


def fields_of(into: type) -> list[tuple[str, bool]] | None:
    """Return the name of the field that each column fills, and whether it has a default."""
    fields = rows._fields(into)
    if fields is None:
        return None
    found = []
    for name, has_default in fields.items():
        hint = get_type_hints(into, include_extras=True)[name]
        inner = fields_of(hint) if isinstance(hint, type) else None
        found += [(name, has_default)] if inner is None else inner
    return found


def problem(columns: list[str], into: type) -> str | None:
    """Say what is wrong with these columns for that class, if anything is.

    A column whose name is that of a field stands in the place of that field.
    """
    fields = fields_of(into)
    if fields is None:
        return None if columns else "no column"
    least = sum(not has_default for _, has_default in fields)
    if not least <= len(columns) <= len(fields):
        return f"{len(columns)} columns for {least} to {len(fields)} fields"
    names = [name for name, _ in fields]
    for column, name in zip(columns, names, strict=False):
        if column != name and column in names:
            return f"{column} stands in the place of {name}"
    return None


def columns_of(tx: Any, statement: Statement) -> list[str] | None:
    """Return the names of the columns that a statement answers with, without running it."""
    texts = getattr(statement, tx.dialect)
    if any(TEMP_TABLE.search(each.sql) for each in texts):
        return None
    [*_, sql] = [each.sql for each in texts if each.answers]
    if tx.dialect == "sqlite":
        details = apsw.ext.query_info(tx._connection, sql)
        return [name for name, *_ in details.description]
    tx.ask(db.adhoc("SELECT 1"), {})
    connection = tx._connection
    query = PostgresQuery(Transformer(connection))
    query.convert(sql, parameters(statement))
    connection.pgconn.prepare(b"", query.query)
    described = connection.pgconn.describe_prepared(b"")
    return [described.fname(each).decode() for each in range(described.nfields)]


async def test_every_row_that_is_read_into_a_class_has_the_columns_of_its_fields(database_url):
    database = db.open(database_url)
    found: dict[str, str] = {}

    def look(tx: Any) -> None:
        for read in find_reads():
            columns = columns_of(tx, read.statement)
            said = None if columns is None else problem(columns, read.into)
            if said is not None:
                found[f"{read.where} {read.statement.name} {read.into.__name__}"] = said

    try:
        await migrations.upgrade(database)
        for room in rooms():
            await migrations.upgrade(database, room=room)
        await database.write(look, verb="look")

        assert {} == found
        assert 200 < len(find_reads())
    finally:
        database.close()


def test_code_names_every_statement_and_none_that_is_not_there():
    """A statement is read at its first use: this is the first use of all of them."""
    missing, used = [], set()
    for name, module, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(
                named(module, node.value), Statements
            ):
                statements = named(module, node.value)
                if hasattr(statements, node.attr):
                    used.add((statements._package, node.attr))
                else:
                    missing.append(f"{name}:{node.lineno} {node.attr}")

    assert [] == missing
    packages = {package for package, _ in used}
    assert (
        set()
        == {(each.package, each.name) for each in list_sections() if each.package in packages}
        - used
    )


class Named(NamedTuple):
    id: int
    name: str
    note: str = ""


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (["id", "name"], None),
        (["id", "?column?"], None),
        (["id", "name", "note"], None),
        (["id"], "1 columns for 2 to 3 fields"),
        (["id", "name", "note", "more"], "4 columns for 2 to 3 fields"),
        (["name", "id"], "name stands in the place of id"),
    ],
)
def test_columns_that_are_not_those_of_the_fields_are_seen(columns, said):
    assert said == problem(columns, Named)
