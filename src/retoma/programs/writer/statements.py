"""Every statement on a target. Names come from the profile alone, and are quoted; values are parameters."""

from collections.abc import Sequence
from typing import Final

from retoma.db import Statement, quoted, verbatim
from retoma.programs.writer.model import Family, Profile

MARKS: Final = "retoma_writer_marks"
FAILURES: Final = "retoma_writer_failures"
FORGOTTEN: Final = 90  # days after which the mark of a job that nobody moves is forgotten


class Sql:
    """For one profile, on one make of database."""

    def __init__(self, dialect: str, profile: Profile) -> None:
        self._postgres = dialect == "postgres"
        self._profile = profile
        self._families = {each.name: each.family for each in profile.columns}
        marks, failures = self._named(MARKS), self._named(FAILURES)
        columns = "processed, stored, failed, digest, total, epoch"
        self.nothing = verbatim("SELECT 1")
        self.take_mark = verbatim(
            f"INSERT INTO {marks} AS mark (job, epoch, processed, stored, failed, digest)"
            f" VALUES (:job, :epoch, 0, 0, 0, '') ON CONFLICT (job) DO UPDATE"
            f" SET epoch = excluded.epoch, moved_at = CURRENT_TIMESTAMP"
            f" WHERE mark.epoch <= excluded.epoch RETURNING {columns}"
        )
        self.read_mark = verbatim(f"SELECT {columns} FROM {marks} WHERE job = :job")
        self.move_mark = verbatim(
            f"UPDATE {marks} SET processed = :processed, stored = :stored, failed = :failed,"
            " digest = :digest, total = :total, moved_at = CURRENT_TIMESTAMP"
            " WHERE job = :job AND epoch = :epoch AND processed = :was"
        )
        old = (
            f"CURRENT_TIMESTAMP - interval '{FORGOTTEN} days'"
            if self._postgres
            else f"datetime('now', '-{FORGOTTEN} days')"
        )
        self.forget_failures = verbatim(
            f"DELETE FROM {failures} WHERE job IN"
            f" (SELECT job FROM {marks} WHERE moved_at < {old})"
        )
        self.forget_marks = verbatim(f"DELETE FROM {marks} WHERE moved_at < {old}")
        self.read_failures = verbatim(
            f"SELECT item, data, error FROM {failures} WHERE job = :job ORDER BY item"
        )
        self.drop_failures = verbatim(f"DELETE FROM {failures} WHERE job = :job")
        self.keep_failures = verbatim(
            f"INSERT INTO {failures} (job, item, data, error) SELECT CAST(:job AS text),"
            + (
                ' x."index", x.data, x.error FROM json_to_recordset(CAST(:items AS json))'
                ' AS x("index" bigint, data json, error text)'
                if self._postgres
                else " value ->> 'index', value -> 'data', value ->> 'error'"
                " FROM json_each(:items)"
            )
        )

    def tables(self) -> list[Statement]:
        moment = "timestamptz" if self._postgres else "text"
        marks, failures = self._named(MARKS), self._named(FAILURES)
        return [
            verbatim(
                f"CREATE TABLE IF NOT EXISTS {marks} (job text PRIMARY KEY,"
                " epoch bigint NOT NULL, processed bigint NOT NULL, stored bigint NOT NULL,"
                " failed bigint NOT NULL, digest text NOT NULL, total bigint,"
                f" moved_at {moment} NOT NULL DEFAULT CURRENT_TIMESTAMP)"
            ),
            verbatim(
                f"CREATE TABLE IF NOT EXISTS {failures} (job text NOT NULL,"
                " item bigint NOT NULL, data text NOT NULL, error text NOT NULL,"
                " PRIMARY KEY (job, item))"
            ),
        ]

    def upsert(self, columns: Sequence[str]) -> Statement:
        table = self._named(self._profile.table)
        key = quoted(self._profile.conflict_key)
        names = [quoted(each) for each in columns]
        updates = ", ".join(f"{each} = excluded.{each}" for each in names if each != key)
        listed = ", ".join(names)
        return verbatim(
            f"INSERT INTO {table} ({listed}) SELECT {self._values(columns, names)}"
            f" FROM {self._rows(table)} WHERE true"
            f" ON CONFLICT ({key}) DO {f'UPDATE SET {updates}' if updates else 'NOTHING'}"
        )

    def paths(self, columns: Sequence[str]) -> dict[str, str]:
        """SQLite finds a field by its path, which is a value like any other."""
        if self._postgres:
            return {}
        return {f"path_{n}": f'$."{name}"' for n, name in enumerate(columns)}

    def _values(self, columns: Sequence[str], names: Sequence[str]) -> str:
        if self._postgres:
            return ", ".join(f"item.{each}" for each in names)
        return ", ".join(self._value(n, name) for n, name in enumerate(columns))

    def _value(self, n: int, column: str) -> str:
        if self._families[column] is Family.JSON:
            return f"nullif(value -> :path_{n}, 'null')"
        return f"value ->> :path_{n}"

    def _rows(self, table: str) -> str:
        if self._postgres:
            return (
                f"json_populate_recordset(CAST(NULL AS {table}), CAST(:rows AS json)) AS item"
            )
        return "json_each(:rows)"

    def _named(self, table: str) -> str:
        return quoted(self._profile.schema, table) if self._postgres else quoted(table)
