"""Programs of ours started for a test: each says where it listens, each is ended by its pid."""

import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from retoma.console.exits import Exit
from tests.nursery import Born, kill_session

T = TypeVar("T")

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 40.0  # seconds of a loaded machine
LOOK = 0.02
LISTENS = re.compile(r"http://127\.0\.0\.1:(\d+)")
API_KEY = "k" * 40
KEYED = {"x-api-key": API_KEY}


def eventually(fact: Callable[[], T | None], what: Callable[[], object] = str) -> T:
    """What it gives once that is something; a fact is waited for, never a time."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = fact()
        if found:
            return found
        time.sleep(LOOK)  # noqa: TID251 — this test waits for a fact
    raise AssertionError(f"it never came to that: {what()}")


@dataclass(slots=True)
class Program:
    """`retoma …` in a process of its own; started again it has the same port and environment, and so its
    own time, whatever clock the test has by then."""

    words: tuple[str, ...]
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    port: int = 0
    child: "subprocess.Popen[bytes] | None" = None
    log: Path = field(init=False)
    _inherited: dict[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)

    def __post_init__(self) -> None:
        self.log = self.folder / f"{self.words[0]}-{secrets.token_hex(3)}.log"

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def server(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> "Program":
        self.begin()
        self.wait()
        return self

    def begin(self) -> None:
        before = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.child = Born(
                [sys.executable, "-m", "retoma", *self.words, "--port", str(self.port)],
                cwd=ROOT,
                env={
                    **self._inherited,
                    "RETOMA_API_KEY": API_KEY,
                    "RETOMA_PRIVATE_HOSTS": "127.0.0.1",
                    "TMPDIR": str(self.folder),  # what is killed cleans up nothing
                    **self.environment,
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._said = before

    def wait(self) -> None:
        found = eventually(self._listening, self.log.read_text)
        self.port = int(found[1])

    _said: int = 0

    def _listening(self) -> re.Match[str] | None:
        assert self.child is not None
        if self.child.poll() == Exit.UNAVAILABLE and self.port:
            self.begin()  # for a moment somebody else has our port as the end of a connection
        assert self.child.poll() is None, (self.child.returncode, self.log.read_text()[-2000:])
        return LISTENS.search(self.log.read_bytes()[self._said :].decode())

    def kill(self) -> None:
        """kill -9, its children too."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        child, self.child = self.child, None
        if child is not None and how is signal.SIGKILL:
            kill_session(child)
        elif child is not None and child.poll() is None:
            os.killpg(child.pid, how)
        if child is not None:
            child.wait(PATIENCE)


@dataclass(slots=True)
class Programs:
    """All that one test, or one module of tests, has started."""

    folder: Path
    _stack: ExitStack

    def start(self, *words: str, **environment: str) -> Program:
        program = self.begin(*words, **environment)
        program.wait()
        return program

    def begin(self, *words: str, **environment: str) -> Program:
        """It may not listen yet: several read themselves in at the same time."""
        program = Program(words, self.folder, environment)
        program.begin()
        self._stack.callback(program.kill)
        return program

    def proxy(self, name: str, user: str, password: str) -> Program:
        return self.begin("sandbox", "proxy", name, RETOMA_SANDBOX_PROXY=f"{user}:{password}")


@contextmanager
def programs(folder: Path) -> Iterator[Programs]:
    with ExitStack() as stack:
        yield Programs(folder, stack)


@dataclass(frozen=True, slots=True)
class Client:
    """Asks a program, with its key."""

    program: Program
    http: httpx2.Client

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        said = {**KEYED, **(headers or {})}
        return self.http.request(
            method, f"{self.program.origin}{path}", json=body, headers=said
        )


@contextmanager
def client(program: Program) -> Iterator[Client]:
    with httpx2.Client(timeout=PATIENCE, trust_env=False) as http:
        yield Client(program, http)
