"""Running a verb: in this process as a rule, in one of its own where that is the promise."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog

from retoma import Retoma
from retoma.cli import program
from retoma.console.exits import guarded
from tests import nursery
from tests.cli import stories

PATIENCE = 60.0  # seconds; a busy machine starts a process slowly


@dataclass(frozen=True, slots=True)
class Said:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def nothing_is_logged() -> None:
    """Before a verb says so, as in a new process: what ran here earlier may have said otherwise."""
    structlog.reset_defaults()


@pytest.fixture
def verb(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """`verb("jobs", "list")` as a person would type it."""

    def run(*words: str) -> Said:
        code: Any = 0
        try:
            guarded(lambda: program(words)(words, prog_name="retoma"))
        except SystemExit as left:
            code = left.code
        said = capsys.readouterr()
        return Said(int(code or 0), said.out, said.err)

    return run


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An address in an empty folder of our own; nothing is there yet."""
    monkeypatch.chdir(tmp_path)
    for name in [each for each in os.environ if each.startswith("RETOMA_SECRET")]:
        monkeypatch.delenv(name)  # of a program that ran in this process
    address = f"sqlite:///{tmp_path / 'work.db'}"
    monkeypatch.setenv("RETOMA_DATABASE_URL", address)
    return address


@pytest.fixture
def worked(url: str) -> str:
    """A database in which a batch has run: four jobs done, one dead."""
    with_app(url, batch_at_work)
    return url


async def batch_at_work(app: Retoma) -> None:
    await app.submit_many("story", [1, 2, stories.HOPELESS, 4, 5], name="five")
    await app.run(until_idle=True)


def with_app(url: str, work: Callable[[Retoma], Awaitable[Any]]) -> Any:
    async def done() -> Any:
        app = stories.app_on(url)
        async with app:
            return await work(app)

    return asyncio.run(done())


def started(
    *words: str, folder: Path, environment: dict[str, str] | None = None, **how: Any
) -> "subprocess.Popen[str]":
    """`retoma …` as a process of its own."""
    return nursery.Born(
        command(*words),
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )


def command(*words: str) -> Sequence[str]:
    return [sys.executable, "-m", "retoma", *words]


def wait_for(holds: Callable[[], Any], said: str) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until, said
        pause(0.05)


def pause(seconds: float) -> None:
    """Real processes need real time."""
    threading.Event().wait(seconds)
