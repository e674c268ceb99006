"""What every test may ask for: a fresh database of each make, a clock that can jump, async tests."""

import asyncio
import inspect
import os
import secrets
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from tests import leftovers, lost_workers, nursery, services
from tests.clock import TestClock
from tests.databases import ENGINE_ONLY, Files, Recycled, Rooms

ADDRESS = "RETOMA_TEST_POSTGRES"
REDIS_ADDRESS = "RETOMA_TEST_REDIS"

# Files that need not outlive a crash of this machine: there every commit waited for the disk.
MEMORY = Path("/dev/shm")  # noqa: S108  # mkdtemp makes a folder of our own inside
MUCH = 4 << 30  # bytes; a container often has too little

# Quick enough to run before every commit: no server, no child process, no waiting.
RULES = ("cron", "duration", "errors", "events", "job", "outcome", "retry", "states")
FAST = (
    "tests/house/",
    "tests/test_codec.py",
    *(f"tests/engine/test_{rule}.py" for rule in RULES),
)


# --- how tests are chosen and run


def pytest_configure(config: pytest.Config) -> None:
    """With xdist one server serves all workers: they find its address in their environment."""
    # A shell that starts us in the background lets us ignore Ctrl-C; what we start must not.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    nursery.plain_tracebacks()
    os.environ["RETOMA_LANGUAGE"] = "en"  # whatever the locale of this machine is
    # We start thousands of processes: what each would compile for itself is compiled once.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if hasattr(config, "workerinput"):
        lost_workers.register_in_worker(config)
        return
    # A run that is told to stop cleans up as it does after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    run = leftovers.begin(config, memory_folder())
    run.close.append(close_postgres)
    if config.getoption("numprocesses", None):
        lost_workers.register(config, run.journals, run.temp)
        if not config.option.collectonly:
            postgres_address()


def memory_folder() -> Path | None:
    """Return the folder of this machine that lies in memory, where it has room for the tests."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > MUCH:
        return MEMORY
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        path = item.path.relative_to(config.rootpath).as_posix()
        if path.startswith(FAST) and "database_url" not in getattr(item, "fixturenames", ()):
            item.add_marker("fast")
    if not soaking():
        left = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """An `async def test_…` gets an event loop of its own. This is all the plugin we need."""
    test = pyfuncitem.obj
    given = getattr(test, "hypothesis", None)
    if given is not None and inspect.iscoroutinefunction(given.inner_test):
        given.inner_test = on_a_loop(given.inner_test)
        return None
    if not inspect.iscoroutinefunction(test):
        return None
    names = pyfuncitem._fixtureinfo.argnames  # as pytest itself calls a test
    on_a_loop(test)(**{name: pyfuncitem.funcargs[name] for name in names})
    return True


def on_a_loop(test: Any) -> Any:
    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


# Two that nobody can change, and that of pytest-timeout.
SIGNALS = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGALRM})
HANDLERS = pytest.StashKey[dict[signal.Signals, Any]]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.stash[HANDLERS] = {each: signal.getsignal(each) for each in SIGNALS}
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """A test leaves every signal as it found it. One that let SIGPIPE end the process ended it an hour later,
    without a word, in the test that wrote to a connection whose reader had left."""
    yield
    changed = []
    for each, before in item.stash[HANDLERS].items():
        if signal.getsignal(each) != before:
            changed.append(each.name)
            signal.signal(each, before)
    assert [] == changed, "this test has changed what signals do"


def soaking() -> bool:
    return os.environ.get("RETOMA_SOAK") == "1"


# --- databases


@pytest.fixture
def forgetful() -> Iterator[None]:
    """What this test makes known as secret is a word like any other in the next."""
    from retoma.secret import known

    yield
    for value in list(known._values):
        known._forget(value)
    assert not known._index


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, rooms: Rooms) -> str:
    """A database that nobody has used. Whoever asks for it runs twice, once on each make."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def rooms() -> Rooms:
    """Whose schema is in the database of a test; a folder or a module may say otherwise."""
    return ENGINE_ONLY


@pytest.fixture
def sqlite_url(sqlite_files: Files, rooms: Rooms, tmp_path: Path) -> str:
    path = tmp_path / "work.db"
    sqlite_files.lay(path, rooms)
    return f"sqlite:///{path}"


@pytest.fixture
def postgres_url(postgres_databases: Callable[[Rooms], Recycled], rooms: Rooms) -> str:
    """This worker's database on PostgreSQL, cleaned, whatever the last test left open in it."""
    return postgres_databases(rooms).hand_over()


@pytest.fixture(scope="session")
def sqlite_files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("migrated"))


@pytest.fixture(scope="session")
def postgres_databases(
    pytestconfig: pytest.Config,
) -> Iterator[Callable[[Rooms], Recycled]]:
    """Databases for this worker alone, one for each schema that a test may ask for."""
    with pytestconfig.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        postgres_address()  # tells what it does
    with ExitStack() as stack:
        yield cache(lambda rooms: stack.enter_context(recycled(rooms)))


@contextmanager
def recycled(rooms: Rooms) -> Iterator[Recycled]:
    name = f"retoma_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}_{secrets.token_hex(4)}"
    with psycopg.connect(postgres_address(), autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        with psycopg.connect(database_address(name), autocommit=True) as connection:
            yield Recycled(connection, database_address(name), rooms)
        server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def durable_postgres() -> Iterator[services.PostgresServer]:
    """A second server, this test's own, that forces every commit to disk and may be crashed."""
    with services.PostgresServer(services.DURABLE) as server:
        yield server


def postgres_address() -> str:
    """The server of this run; started by whoever asks first where none was given."""
    if ADDRESS not in os.environ:
        server = services.PostgresServer(services.FAST)
        server.start()  # ends with this process
        os.environ[ADDRESS] = server.dsn
        STARTED.append(server)
    return os.environ[ADDRESS]


STARTED: list[services.PostgresServer] = []  # by this process, and not yet closed


def close_postgres() -> list[str]:
    """Stop the server of this run; a line for each database and role that the tests have left in it."""
    left: list[str] = []
    for server in STARTED:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            left += [f"in PostgreSQL: {name}" for (name,) in connection.execute(LEFT)]
        server.close()
        del os.environ[ADDRESS]
    STARTED.clear()
    return left


LEFT = """
SELECT 'the database ' || datname FROM pg_database WHERE datname LIKE 'retoma%' UNION
SELECT 'the role ' || rolname FROM pg_roles WHERE rolname NOT LIKE 'pg_%' AND rolname <> current_user
"""


def database_address(name: str) -> str:
    return urlsplit(postgres_address())._replace(path=f"/{name}").geturl()


# --- a broker


@pytest.fixture(scope="session")
def redis_url(pytestconfig: pytest.Config) -> Iterator[str]:
    """A server that speaks Redis, this worker's own unless one was given."""
    if REDIS_ADDRESS in os.environ:
        yield os.environ[REDIS_ADDRESS]
        return
    with pytestconfig.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        server = services.RedisServer()  # tells what it does
    with server:
        yield server.url


# --- time


@pytest.fixture
def test_clock(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClock:
    """A clock that can jump, shared with every process started after it."""
    clock = TestClock(tmp_path / "clock", database_url)
    for name, value in clock.environment.items():
        monkeypatch.setenv(name, value)
    return clock


@pytest.fixture
def soak() -> bool:
    """Whether this run may take long: ./run test --soak."""
    return soaking()
