"""The servers the tests rest on: found in order, private, crashable, gone afterwards."""

import os
import socket
from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest

from tests.services import DURABLE, PostgresServer, RedisServer, postgres


def test_a_crashed_server_comes_back_with_what_was_committed(durable_postgres):
    first, dsn = durable_postgres.pid, durable_postgres.dsn
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")

    durable_postgres.restart(mode="immediate")

    assert first != durable_postgres.pid
    assert dsn == durable_postgres.dsn
    with psycopg.connect(dsn) as connection:
        assert (42,) == connection.execute("SELECT answer FROM kept").fetchone()
        assert ("on",) == connection.execute("SHOW fsync").fetchone()


@pytest.mark.parametrize("make", [lambda: PostgresServer(DURABLE), RedisServer])
def test_the_port_of_a_stopped_server_is_given_to_nobody_else(make):
    """Whoever asked for a free port while a test had stopped its server might get that one."""
    with make() as server:
        address = ("127.0.0.1", server.port)
        server.stop()
        with (
            socket.socket() as another,
            pytest.raises(OSError, match="Address already in use"),
        ):
            another.bind(address)
        server.start()
        socket.create_connection(address, timeout=30).close()

    with socket.socket() as another:  # once it is closed the port is free
        another.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        another.bind(address)


def test_a_closed_server_leaves_no_process_and_no_folder():
    with PostgresServer(DURABLE) as server:
        pid, home = server.pid, server._home
    assert home is not None

    assert not home.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_server_takes_no_stranger(durable_postgres):
    stranger = durable_postgres.dsn.replace("retoma:", "retoma:not")

    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(stranger)


def test_the_newest_complete_folder_of_debian_is_taken(tmp_path):
    for version, names in {
        "9.6": postgres.NEEDED,
        "15": postgres.NEEDED,
        "17": ["postgres"],
    }.items():
        programs_in(tmp_path / version / "bin", names)

    found = postgres.in_debian_folder(tmp_path)

    assert found is not None
    assert tmp_path / "15" / "bin" == found.folder


def test_nothing_is_installed_where_apt_is_forbidden(monkeypatch):
    monkeypatch.setenv("NO_APT", "1")

    assert postgres.with_apt() is None


def test_a_closed_home_is_no_place_for_programs(tmp_path):
    closed = tmp_path / "closed"
    inside = closed / "bin"
    inside.mkdir(parents=True)
    closed.chmod(0o700)

    assert not postgres.everybody_may_enter(inside)
    assert postgres.everybody_may_enter(Path("/"))


def programs_in(folder: Path, names: Sequence[str]) -> None:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch(mode=0o755)
