"""Time, chance, ids, sockets, threads and processes come through few doors; nobody else touches them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.house.files import SOURCE

# What may not be touched, as dotted names; a name stands for everything below it too.
GUARDED = {
    "time": (
        *("time.time", "time.time_ns", "time.sleep", "time.monotonic", "time.monotonic_ns"),
        *(
            "time.perf_counter",
            "time.perf_counter_ns",
            "time.clock_gettime",
            "time.clock_gettime_ns",
        ),
        *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today"),
        *("datetime.date.today", "asyncio.sleep"),
    ),
    "chance": ("random", "secrets", "os.urandom", "numpy.random"),
    "ids": ("uuid.uuid1", "uuid.uuid4", "uuid.uuid6", "uuid.uuid7"),
    "sockets": (
        *("socket", "socketserver", "ssl", "select", "selectors"),
        *("asyncio.open_connection", "asyncio.start_server", "asyncio.open_unix_connection"),
    ),
    # A client of HTTP is a way out of the house, and there is one: outbound/.
    "http": (
        *("httpx", "httpx2", "httpcore", "httpcore2", "requests", "niquests", "aiohttp"),
        *("urllib3", "urllib.request", "http.client", "ftplib", "smtplib", "websockets"),
        "playwright",
    ),
    "threads": ("threading", "_thread", "concurrent.futures", "asyncio.to_thread"),
    "processes": (
        *(
            "subprocess",
            "multiprocessing",
            "pebble",
            "signal",
            "os.fork",
            "os.kill",
            "os.system",
        ),
        *("os.popen", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"),
    ),
}
# The loop itself opens sockets too, whatever it is called where it is used.
LOOP = ("getaddrinfo", "create_connection", "sock_connect", "create_unix_connection")
# The type of a source of chance is not chance: it is how a seeded one is passed in.
HARMLESS = ("random.Random",)


@dataclass(frozen=True, slots=True)
class Door:
    """A module that may touch some of it, and why it must."""

    opens: tuple[str, ...]
    reason: str


DOORS: dict[str, Door] = {
    "toolkit/beside.py": Door(("threads",), "a loop beside code that is not async"),
    "console/exits.py": Door(("processes",), "SIGTERM while a program still reads itself in"),
    "console/processes.py": Door(
        ("processes", "sockets", "threads"),
        "runners started and told to stop, the signals of a shell, threads that would keep us,"
        " ports held for programs to come",
    ),
    "db/clock.py": Door(("time",), "the time of the embedded database, in which tests travel"),
    "db/crashpoint.py": Door(("processes",), "an armed crash point kills its own process"),
    "db/patience.py": Door(("time",), "asks a database that is away again, after a while"),
    "db/poll.py": Door(("sockets",), "waits on a socket whatever number it has"),
    "db/postgres.py": Door(("threads", "time"), "a thread per connection"),
    "db/one_thread.py": Door(("threads",), "the one thread that drives a connection"),
    "db/sqlite.py": Door(("threads",), "the writer thread"),
    "db/write_lock.py": Door(("threads",), "a thread waits where another process writes"),
    "db/unfinished.py": Door(
        ("threads", "time"), "the connections of a process, each with its thread, wait for it"
    ),
    "db/wakeups.py": Door(("sockets", "threads"), "each process is woken by a socket"),
    "db/wire.py": Door(("sockets", "threads"), "a wait on a socket, ended from another thread"),
    "library/connection.py": Door(("threads",), "one object may be used by several threads"),
    "outbound/call.py": Door(("http",), "requests and addresses are httpx2's own"),
    "outbound/client.py": Door(
        ("http", "sockets"), "the way out; whose certificates it trusts"
    ),
    "outbound/mail.py": Door(("http", "sockets"), "the way out for letters, over TLS"),
    "outbound/policy.py": Door(("http",), "reads an address as whoever connects will read it"),
    "outbound/proxies.py": Door(("http",), "the environment's proxies, for who asks for them"),
    "outbound/resolver.py": Door(("sockets",), "names become addresses"),
    "outbound/sdk.py": Door(
        ("http", "threads"), "what an SDK asks goes our way; its import takes seconds"
    ),
    "outbound/wire.py": Door(("http", "sockets"), "connections, each to an address looked at"),
    "dispatch/shared_state.py": Door(
        ("processes",), "a child of Celery's pool may have children"
    ),
    "dispatch/embedded_runner.py": Door(
        ("threads",), "a loop of ours beside the tasks of Celery"
    ),
    "engine/loop_thread.py": Door(("threads",), "a loop beside code that is not async"),
    "dispatch/sender.py": Door(("threads",), "whoever submits waits for no broker"),
    "engine/isolation/children.py": Door(
        ("processes", "threads"), "a pool of children, and whom the dead among them answer for"
    ),
    "engine/isolation/confine.py": Door(
        ("processes", "sockets"), "tries whether a confined child can do what it should not"
    ),
    "engine/run/heartbeat.py": Door(("threads",), "a heartbeat must not wait for a busy loop"),
    "engine/isolation/isolate.py": Door(
        ("processes", "threads"), "sync steps run in children, or in a thread where asked for"
    ),
    "engine/ports.py": Door(("chance", "ids", "time"), "the engine's doors themselves"),
    "engine/isolation/scratch.py": Door(
        ("threads",), "threads that ask for the one folder at once"
    ),
    "sandbox/proxies.py": Door(("threads",), "a child of a proxy that was killed ends with it"),
    "simulation/simulate.py": Door(("time",), "waits by the loop's virtual time"),
    "simulation/universe.py": Door(("time",), "waits by the loop's virtual time"),
    "chromium.py": Door(
        ("http",), "a browser is started and ended; where it draws, it connects to nobody"
    ),
    "programs/worker/browser.py": Door(
        ("http",), "a browser connects by itself: to the proxy of its session, and nowhere else"
    ),
}


def touched(source: str) -> Iterator[tuple[int, str, str]]:
    """Each guarded thing that a module touches: line, what it is, its dotted name."""
    tree = ast.parse(source)
    names = imported_names(tree)
    # In random.Random the name random is only the way to it.
    ways = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in LOOP:
            yield node.lineno, "sockets", node.attr
        if id(node) in ways:
            continue
        dotted = dotted_name(node, names)
        if dotted is None or dotted in HARMLESS:
            continue
        for what, guarded in GUARDED.items():
            if any(dotted == name or dotted.startswith(f"{name}.") for name in guarded):
                yield node.lineno, what, dotted  # type: ignore[attr-defined]  # it has a name, so a line


def imported_names(tree: ast.Module) -> dict[str, str]:
    """What each imported name stands for: `from time import sleep as nap` makes nap time.sleep."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def dotted_name(node: ast.AST, names: dict[str, str]) -> str | None:
    """`t.sleep` as time.sleep, where t is an import of this module."""
    match node:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Attribute(value=value, attr=attribute):
            base = dotted_name(value, names)
            return f"{base}.{attribute}" if base else None
        case ast.Call(func=func, args=[], keywords=[]) if dotted_name(func, names) in HARMLESS:
            return "random.unseeded"
        case _:
            return None


def trespasses(root: Path, doors: dict[str, Door]) -> list[str]:
    found = []
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root).as_posix()
        door = doors.get(place)
        found += [
            f"{place}:{line} touches {what} ({name}); ask for it through engine/ports.py"
            for line, what, name in touched(path.read_text())
            if door is None or what not in door.opens
        ]
    return found


def test_only_the_doors_touch_time_chance_ids_sockets_threads_and_processes():
    assert [] == trespasses(SOURCE, DOORS)


def test_every_door_is_in_use():
    for place, door in DOORS.items():
        used = {what for _, what, _ in touched((SOURCE / place).read_text())}
        assert set(door.opens) == used, f"{place} no longer needs all it may touch"


@pytest.mark.parametrize(
    "planted",
    [
        "import time\ntime.time()",
        "import time as t\nt.sleep(1)",
        "from time import monotonic\nmonotonic()",
        "from datetime import datetime\ndatetime.now()",
        "import datetime as dt\ndt.datetime.utcnow()",
        "import random\nrandom.random()",
        "import random\nrandom.Random()",
        "from random import Random, choice\nchoice([1])",
        "from uuid import uuid4\nuuid4()",
        "import uuid\nhex = uuid.uuid4().hex",
        "import socket\nsocket.socket()",
        "import threading\nthreading.Lock()",
        "import httpx2\nhttpx2.AsyncClient()",
        "def late():\n    from httpx2 import AsyncClient\n    AsyncClient()",
        "import urllib.request\nurllib.request.urlopen('https://example.org')",
        "from http.client import HTTPSConnection\nHTTPSConnection('example.org')",
        "import asyncio\nasyncio.get_running_loop().getaddrinfo('example.org', 443)",
        "async def go(loop):\n    await loop.create_connection(object, 'example.org', 443)",
        "from concurrent.futures import ThreadPoolExecutor\nThreadPoolExecutor()",
        "import multiprocessing as mp\nmp.get_context('spawn')",
        "import asyncio, subprocess\nsubprocess.run(['true'])",
        "import asyncio\nasync def nap():\n    await asyncio.sleep(1)",
        "def late():\n    from time import sleep\n    sleep(1)",
    ],
)
def test_a_trespass_is_seen(tmp_path, planted):
    (tmp_path / "innocent.py").write_text(planted)

    assert [] != trespasses(tmp_path, {})


@pytest.mark.parametrize(
    "harmless",
    [
        "from random import Random\ndef draw(rng: Random) -> float:\n    return rng.random()",
        "from random import Random\nrng = Random(7)",
        "import asyncio\nasync def go():\n    async with asyncio.timeout(1):\n        pass",
        "from datetime import datetime\ndef late(at: datetime) -> str:\n    return at.isoformat()",
        "def run(clock):\n    return clock.time() + clock.sleep(1)",
    ],
)
def test_what_was_passed_in_is_no_trespass(tmp_path, harmless):
    (tmp_path / "innocent.py").write_text(harmless)

    assert [] == trespasses(tmp_path, {})
