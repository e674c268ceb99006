"""Second databases: places to restore to, of the same make as the first."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from tests.conftest import database_address, postgres_address


@contextmanager
def beside(url: str, folder: Path) -> Iterator[str]:
    """An address where nothing is yet."""
    if url.startswith("sqlite"):
        yield f"sqlite:///{folder / 'second.db'}"
        return
    with made() as name:
        yield database_address(name)


@contextmanager
def made() -> Iterator[str]:
    """A database of its own on PostgreSQL, which may be thrown away and made again."""
    name = f"retoma_copy_{secrets.token_hex(4)}"
    create(name)
    yield name
    drop(name)


def create(name: str) -> None:
    _run("CREATE DATABASE {} TEMPLATE template0", name)


def drop(name: str) -> None:
    _run("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)


def rename(name: str, to: str) -> None:
    _run("ALTER DATABASE {} RENAME TO {}", name, to)


def _run(text: str, *names: str) -> None:
    with psycopg.connect(postgres_address(), autocommit=True) as server:
        server.execute(sql.SQL(text).format(*map(sql.Identifier, names)))
