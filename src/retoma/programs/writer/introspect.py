"""What a target table is like: its columns, their types, whether a key is one."""

import re
from typing import Any, Final

from retoma.db import Database, Row, Transaction, verbatim
from retoma.engine.rules.errors import BadInput
from retoma.programs.writer.model import Column, Family
from retoma.programs.writer.target import failure
from retoma.words import say

LENGTH: Final = re.compile(r"\((\d+)\)$")
# By how PostgreSQL calls its types; what is not here it judges itself.
POSTGRES: Final = {
    "text": Family.TEXT,
    "character varying": Family.TEXT,
    "character": Family.TEXT,
    "smallint": Family.INTEGER,
    "integer": Family.INTEGER,
    "bigint": Family.INTEGER,
    "numeric": Family.NUMBER,
    "real": Family.NUMBER,
    "double precision": Family.NUMBER,
    "boolean": Family.BOOLEAN,
    "timestamp with time zone": Family.INSTANT,
    "timestamp without time zone": Family.INSTANT,
    "date": Family.DATE,
    "uuid": Family.UUID,
    "json": Family.JSON,
    "jsonb": Family.JSON,
}
LARGEST: Final = {"smallint": 2**15 - 1, "integer": 2**31 - 1, "bigint": 2**63 - 1}
# By what SQLite looks for in a declared type, the first that is found.
SQLITE: Final = (
    ("BOOL", Family.BOOLEAN),
    ("JSON", Family.JSON),
    ("UUID", Family.UUID),
    ("TIMESTAMP", Family.INSTANT),
    ("DATETIME", Family.INSTANT),
    ("DATE", Family.DATE),
    ("INT", Family.INTEGER),
    *((each, Family.TEXT) for each in ("CHAR", "CLOB", "TEXT")),
    *((each, Family.NUMBER) for each in ("REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL")),
)

COLUMNS_POSTGRES: Final = verbatim(
    """SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
              a.atthasdef OR a.attidentity <> '', a.attgenerated <> '' OR a.attidentity = 'a'
       FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
       JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE n.nspname = :schema AND c.relname = :table AND c.relkind IN ('r', 'p')
         AND a.attnum > 0 AND NOT a.attisdropped
       ORDER BY a.attnum"""
)
UNIQUE_POSTGRES: Final = verbatim(
    """SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
       JOIN pg_namespace n ON n.oid = c.relnamespace
       JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
       WHERE n.nspname = :schema AND c.relname = :table AND a.attname = :column
         AND i.indisunique AND i.indisvalid AND i.indnkeyatts = 1 AND i.indpred IS NULL"""
)
COLUMNS_SQLITE: Final = verbatim(
    """SELECT name, type, "notnull", dflt_value IS NOT NULL OR (pk = 1 AND upper(type) = 'INTEGER'),
              hidden <> 0
       FROM pragma_table_xinfo(:table) ORDER BY cid"""
)
UNIQUE_SQLITE: Final = verbatim(
    """SELECT 1 FROM pragma_table_info(:table) AS t WHERE t.name = :column AND t.pk = 1
         AND NOT EXISTS (SELECT 1 FROM pragma_table_info(:table) AS o WHERE o.pk > 1)
       UNION ALL
       SELECT 1 FROM pragma_index_list(:table) AS l WHERE l."unique" = 1 AND l.partial = 0
         AND (SELECT group_concat(i.name, char(0)) FROM pragma_index_info(l.name) AS i) = :column"""
)


async def look(database: Database, schema: str, table: str, key: str) -> tuple[Column, ...]:
    """The columns that can be written; BadInput where the table or its key will not do."""
    try:
        found, unique = await database.read(lambda tx: _asked(tx, schema, table, key))
    except Exception as error:  # noqa: BLE001 — each driver has its own
        raise BadInput(
            say("the target cannot be asked: {error}", error=failure(error))
        ) from None
    if not found:
        raise BadInput(
            say("the target has no table {table} in {schema}", table=table, schema=schema)
        )
    column = _column_postgres if database.dialect == "postgres" else _column_sqlite
    columns = tuple(column(*about) for *about, computed in found if not computed)
    if key not in {each.name for each in columns}:
        raise BadInput(say("{table} has no column {column!r}", table=table, column=key))
    if not unique:
        raise BadInput(
            say(
                "{table}.{column} is no key: give it a unique index of its own first",
                table=table,
                column=key,
            )
        )
    return columns


def _asked(tx: Transaction, schema: str, table: str, key: str) -> tuple[list[Row], bool]:
    if tx.dialect == "postgres":
        where = {"schema": schema, "table": table}
        rows, _ = tx.for_caller(COLUMNS_POSTGRES, **where)
        unique, _ = tx.for_caller(UNIQUE_POSTGRES, **where, column=key)
    else:
        rows, _ = tx.for_caller(COLUMNS_SQLITE, table=table)
        unique, _ = tx.for_caller(UNIQUE_SQLITE, table=table, column=key)
    return rows, bool(unique)


def _column_postgres(name: str, type_: str, not_null: Any, has_default: Any) -> Column:
    plain = LENGTH.sub("", str(type_)).partition("(")[0]
    family = POSTGRES.get(plain, Family.OTHER)
    return _column(name, type_, not not_null, has_default, family, LARGEST.get(plain))


def _column_sqlite(name: str, type_: str, not_null: Any, has_default: Any) -> Column:
    declared = str(type_).upper()
    family = next((each for word, each in SQLITE if word in declared), Family.OTHER)
    largest = LARGEST["bigint"] if family is Family.INTEGER else None
    return _column(name, type_, not not_null, has_default, family, largest)


def _column(
    name: Any, type_: Any, nullable: bool, has_default: Any, family: Family, largest: int | None
) -> Column:
    length = LENGTH.search(str(type_))
    most = int(length[1]) if length and family is Family.TEXT else largest
    return Column(
        name=str(name),
        type=str(type_),
        family=family,
        nullable=nullable,
        has_default=bool(has_default),
        most=most,
    )
