"""Where things are measured: a private PostgreSQL and a private folder, a fresh database each time.

Every side of a comparison has the same server, the same disk, the same settings, and an empty database.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

VARIABLE = "RETOMA_BENCH_POSTGRES"


@dataclass(frozen=True, slots=True)
class Places:
    """A server and a folder; each call gives a database or a file nobody has used before."""

    server: str
    folder: Path
    _numbers: "count[int]"

    def postgres(self, side: str) -> str:
        """The address of an empty database; the one this side used before is dropped."""
        name = f"bench_{side}"
        with psycopg.connect(self.server, autocommit=True) as connection:
            known = sql.Identifier(name)
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(known))
            connection.execute(sql.SQL("CREATE DATABASE {}").format(known))
        return urlunsplit(urlsplit(self.server)._replace(path=f"/{name}"))

    def file(self, side: str) -> str:
        """The path of a file that does not exist yet."""
        return str(self.folder / f"{side}-{next(self._numbers)}.db")

    def settle(self) -> None:
        """Pay the debts of what ran before, so that the next side does not: pages flushed, WAL recycled."""
        with psycopg.connect(self.server, autocommit=True) as connection:
            connection.execute("CHECKPOINT")

    def describe(self) -> str:
        with psycopg.connect(self.server) as connection:
            asked = ("server_version", "fsync", "synchronous_commit", "shared_buffers")
            told = [
                connection.execute(sql.SQL("SHOW {}").format(sql.Identifier(a))) for a in asked
            ]
            version, *rest = [answer.fetchall()[0][0] for answer in told]
        settings = ", ".join(
            f"{name}={value}" for name, value in zip(asked[1:], rest, strict=True)
        )
        return f"PostgreSQL {version}: {settings}"


@contextlib.contextmanager
def open_places() -> Iterator[Places]:
    """The server in RETOMA_BENCH_POSTGRES, or one of our own for as long as the block lasts."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="retoma-bench-"))
        server = os.environ.get(VARIABLE) or stack.enter_context(own_server())
        yield Places(server, Path(folder), count(1))


@contextlib.contextmanager
def own_server() -> Iterator[str]:
    from tests.services import DURABLE, PostgresServer

    with PostgresServer(DURABLE) as server:
        yield server.dsn
