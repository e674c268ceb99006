"""A commit that takes its time: a server of the tests waits for a standby that never answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from tests import services
from tests.engine.aids import eventually

SOON = 30.0  # seconds of a loaded machine


@contextmanager
def connected(server: services.PostgresServer) -> Iterator["psycopg.Connection[Any]"]:
    """Of somebody who waits for no standby."""
    options = "-c synchronous_commit=local"
    with psycopg.connect(server.dsn, autocommit=True, options=options) as connection:
        yield connection


@contextmanager
def standby_gone(admin: "psycopg.Connection[Any]") -> Iterator[None]:
    """Every commit is on disk and waits for a standby that never answers."""
    admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'gone'")
    admin.execute("SELECT pg_reload_conf()")
    until_commits(admin, wait=True)
    try:
        yield
    finally:
        admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
        admin.execute("SELECT pg_reload_conf()")
        until_commits(admin, wait=False)  # else the next test may find what this one left


def until_commits(admin: "psycopg.Connection[Any]", *, wait: bool) -> None:
    """The server hears of it a moment later: commits are tried until one waits, or one does not."""
    info = admin.info
    probe = psycopg.connect(
        host=info.host,
        port=info.port,
        user=info.user,
        password=info.password,
        dbname=info.dbname,
        autocommit=True,
    )
    cancel = (
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
        " WHERE wait_event = 'SyncRep' AND pid = %s"
    )
    waited = not wait
    while waited is not wait:
        waited = False
        probe.pgconn.send_query(b"CREATE TABLE public.probe (); DROP TABLE public.probe")
        while probe.pgconn.is_busy():
            waited |= bool(admin.execute(cancel, [probe.info.backend_pid]).fetchall())
            probe.pgconn.consume_input()
        while probe.pgconn.get_result():
            pass
    probe.close()


async def until_it_waits(admin: "psycopg.Connection[Any]", event: str) -> None:
    """Return when what our tests write waits for `event` at the server."""
    sql = (
        "SELECT 1 FROM pg_stat_activity"
        " WHERE wait_event = %s AND application_name = 'retoma write'"
    )

    async def waits() -> bool:
        return bool(admin.execute(sql, [event]).fetchall())

    await eventually(waits, SOON)
