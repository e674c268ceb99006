"""What is really sent: every statement that either driver is given, BEGIN and COMMIT as well."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import psycopg


@contextmanager
def listed() -> Iterator[list[str]]:
    """The statements that retoma sends on connections it opens in here, as they are sent."""
    sent: list[str] = []  # appended to from several threads

    def trace(_cursor: Any, sql: str, _bindings: Any) -> bool:
        sent.append(sql)
        return True

    def listen(connection: apsw.Connection) -> None:
        connection.exec_trace = trace

    execute: Any = psycopg.Connection.execute

    def told(self: Any, query: Any, *args: Any, **how: Any) -> Any:
        if self.info.get_parameters().get("application_name", "").startswith("retoma"):
            sent.append(str(query))
        return execute(self, query, *args, **how)

    apsw.connection_hooks.append(listen)
    psycopg.Connection.execute = told  # type: ignore[method-assign]
    try:
        yield sent
    finally:
        apsw.connection_hooks.remove(listen)
        psycopg.Connection.execute = execute  # type: ignore[method-assign]
