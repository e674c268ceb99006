"""A disk that can be full, for every process of a test.

On SQLite a file says so: `pages` keeps the database from growing (`max_page_count`), `log` refuses
every commit, as a write-ahead log does that cannot grow. On PostgreSQL triggers raise SQLSTATE 53100:
on what is large, or with `log` on every row that a runner writes.
"""

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import psycopg

VARIABLE = "RETOMA_TEST_DISK"
NO_MORE = 1  # pages: SQLite takes it for as many as there are
PLENTY = 2**31 - 2
LARGE = ("evidence", "jobs", "steps")
SMALL = ("events", "tallies")

NO_ROOM = """
CREATE OR REPLACE FUNCTION retoma.no_room() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    RAISE EXCEPTION USING ERRCODE = '53100',
        MESSAGE = 'could not extend file "base/1/2": No space left on device';
END$$
"""


class Disk:
    """Under one database."""

    def __init__(self, url: str, file: Path) -> None:
        self._url = url
        self._file = file

    @property
    def environment(self) -> dict[str, str]:
        return {VARIABLE: str(self._file)}

    def fill(self, what: str = "pages") -> None:
        """No room from now on, for anybody."""
        self._file.write_text(what)
        if self._url.startswith("sqlite:"):
            return
        with psycopg.connect(self._url) as connection:
            connection.execute(NO_ROOM)
            for table in LARGE if what == "pages" else LARGE + SMALL:
                connection.execute(_trigger(table, "INSERT"))
            if what == "log":
                connection.execute(_trigger("runners", "INSERT OR UPDATE"))

    def free(self) -> None:
        """Room again."""
        self._file.unlink(missing_ok=True)
        if not self._url.startswith("sqlite:"):
            with psycopg.connect(self._url) as connection:
                connection.execute("DROP FUNCTION retoma.no_room() CASCADE")


def _trigger(table: str, when: str) -> Any:
    return (
        f"CREATE TRIGGER no_room BEFORE {when} ON retoma.{table}"
        " FOR EACH ROW EXECUTE FUNCTION retoma.no_room()"
    )


def watch() -> Callable[[], None]:
    """From now on every SQLite connection of this process heeds the file; call to end it."""
    hook = partial(_heed, Path(os.environ[VARIABLE]))
    apsw.connection_hooks.append(hook)
    return lambda: apsw.connection_hooks.remove(hook)


def _heed(file: Path, connection: apsw.Connection) -> None:
    writing = False

    def before(_cursor: Any, sql: str, _bindings: Any) -> bool:
        nonlocal writing
        if sql == "BEGIN IMMEDIATE":
            writing = True
            connection.pragma("max_page_count", NO_MORE if file.exists() else PLENTY)
        elif sql == "COMMIT" and writing:
            writing = False
            refuse_log()
        elif not writing and re.search(r"^UPDATE", sql, re.MULTILINE):
            refuse_log()  # a lone write is a transaction in itself
        return True

    def refuse_log() -> None:
        if file.exists() and file.read_text() == "log":
            raise apsw.FullError("database or disk is full")

    connection.exec_trace = before
