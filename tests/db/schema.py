"""The schema as the databases tell it, to compare with what the golden files say.

Also a program: `python -m tests.db.schema` writes the golden files anew, after a new migration.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from retoma import db
from retoma.db import Transaction, adhoc, migrations
from tests.services import PostgresServer

HERE = Path(__file__).parent

TOLD = adhoc(
    """SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'
       ORDER BY tbl_name, type DESC, name""",
    """SELECT told FROM (
    SELECT c.relname || '.' || a.attname AS name, 1 AS place, format('%s.%s %s%s%s%s',
        c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
        CASE WHEN a.attcollation NOT IN (0, 100) THEN ' COLLATE ' || o.collname ELSE '' END,
        CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END,
        CASE WHEN a.attidentity <> '' THEN ' IDENTITY' ELSE
            coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') END) AS told
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    LEFT JOIN pg_collation o ON o.oid = a.attcollation
    WHERE c.relnamespace = to_regnamespace('retoma') AND c.relkind = 'r'
      AND NOT a.attisdropped
    UNION ALL
    SELECT relname, 2, format('%s WITH %s', relname, array_to_string(reloptions, ', '))
    FROM pg_class WHERE relnamespace = to_regnamespace('retoma') AND relkind = 'r'
      AND reloptions IS NOT NULL
    UNION ALL
    SELECT conname, 3, format('%s: %s', CAST(conrelid AS regclass), pg_get_constraintdef(oid))
    FROM pg_constraint WHERE connamespace = to_regnamespace('retoma') AND contype <> 'n'
    UNION ALL
    SELECT indexname, 4, indexdef FROM pg_indexes WHERE schemaname = 'retoma'
    UNION ALL
    SELECT tgname, 5, pg_get_triggerdef(oid) FROM pg_trigger
    WHERE NOT tgisinternal AND tgrelid IN
        (SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace('retoma'))
    UNION ALL
    SELECT proname, 6, pg_get_functiondef(oid) FROM pg_proc
    WHERE pronamespace = to_regnamespace('retoma')
    UNION ALL
    SELECT viewname, 7, format('%s AS %s', viewname, definition) FROM pg_views
    WHERE schemaname = 'retoma') things
ORDER BY place, name, told""",
)


def golden(dialect: str) -> Path:
    return HERE / f"schema.{dialect}.sql"


def told(tx: Transaction) -> str:
    """Everything in our schema, in an order that does not depend on when it was made."""
    return "\n".join(row[0].rstrip() for row in tx.all(TOLD)) + "\n"


async def write_golden(url: str) -> None:
    database = db.open(url)
    try:
        await migrations.upgrade(database)
        golden(database.dialect).write_text(await database.read(told))
    finally:
        database.close()


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, PostgresServer() as server:
        for url in (f"sqlite:///{folder}/work.db", server.dsn):
            asyncio.run(write_golden(url))
    return 0


if __name__ == "__main__":
    sys.exit(main())
