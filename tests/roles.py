"""Roles of a test's PostgreSQL database, made by `retoma db grant --apply` and gone after it."""

import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from retoma.cli.db import grant
from retoma.grants import Program

Login = Callable[[Program], str]


@contextmanager
def roles(postgres_url: str) -> Iterator[Login]:
    """Gives the database's address for the role of a program. Asked again, it grants again."""
    mark = secrets.token_hex(4)  # roles belong to the whole server, which tests share
    made: set[str] = set()

    def login(program: Program) -> str:
        name = f"test_{program}_{mark}"
        made.add(name)
        give = partial(grant, postgres_url, False, program=program, name=name, apply=True)
        with ThreadPoolExecutor(1) as apart:  # the verb has a loop of its own
            apart.submit(give).result()
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            owner.execute(
                sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(name), mark)
            )
        parts = urlsplit(postgres_url)
        at = f"{name}:{mark}@{parts.hostname}:{parts.port}"
        return urlunsplit(parts._replace(netloc=at))

    try:
        yield login
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            for name in made:
                drop(owner, name)


def drop(owner: "psycopg.Connection[tuple[object, ...]]", name: str) -> None:
    owner.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [name]
    )
    owner.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
    owner.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))
