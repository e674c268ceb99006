"""The scrape worker in a browser: the same API, the same states, through the same proxies."""

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from retoma.cli.worker import _browser
from retoma.console.exits import Exit, Stop
from tests.programs.processes import API_KEY, Client, Program, client, programs
from tests.programs.test_worker import (
    CANARY,
    SEED,
    TWO_WEEKS,
    asking,
    begin,
    begin_session,
    ended,
    expected,
    ready,
    results,
    until,
)
from tests.services.chromium import chromium_path

PIPE = b"--remote-debugging-pipe"  # how playwright speaks with it
OTHER = b"--type="  # all but the first say what they are for


@dataclass(frozen=True, slots=True)
class World:
    site: Program
    red: Program
    worker: Client

    def through(self) -> list[str]:
        """The proxies by which each request came to the site."""
        lines = self.worker.http.get(f"{self.site.origin}/_sandbox/log").json()
        return [line["proxy"] for line in lines]

    def browsers(self) -> list[int]:
        """The first process of each."""
        said = {pid: read(pid, "cmdline") for pid in self.family()}
        return [pid for pid, words in said.items() if PIPE in words and OTHER not in words]

    def family(self) -> list[int]:
        """All that the worker has started, and what those have."""
        assert self.worker.program.child is not None
        parents = {pid: parent_of(pid) for pid in pids()}
        known = {self.worker.program.child.pid}
        while more := {pid for pid, parent in parents.items() if parent in known} - known:
            known |= more
        return sorted(known)


def pids() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # it has just ended
        return b""


def parent_of(pid: int) -> int:
    told = read(pid, "stat").rpartition(b")")[2].split()
    return int(told[1]) if told else 0


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("browser")
    with programs(folder) as those:
        red = those.proxy("red", "ana", CANARY)
        site = those.start("sandbox", "ads", "--seed", str(SEED))
        worker = those.start(
            *("worker-service", "--site", site.origin, "--data", str(folder / "worker")),
            *("--watch", "0.1", "--browser", "--chromium", chromium_path()),
        )
        red.wait()
        with client(worker) as asked:
            yield World(site, red, asked)


@pytest.fixture
def world(started: World) -> World:
    assert 200 == started.worker.ask("DELETE", "/session").status_code
    return started


def told(world: World) -> Any:
    return world.worker.ask("GET", "/session/status").json()


def test_a_browser_brings_home_what_the_library_holds_through_its_proxy_alone(world):
    before = len(world.through())
    ready(world.worker, world.red)
    browsers, family = world.browsers(), world.family()
    asked = asking(TWO_WEEKS[0], TWO_WEEKS[1], "video", "pt")
    job = begin(world.worker, asked)
    ended(world.worker, job, "completed")
    found = results(world.worker, job).json()

    assert 1 == len(browsers)
    assert API_KEY.encode() not in read(browsers[0], "environ")
    assert not [pid for pid in family if CANARY.encode() in read(pid, "cmdline")]
    assert expected(media="video", languages=("pt",)) == found["ads"] != []
    through = world.through()[before:]
    assert len(through) >= 3
    assert {"red"} == set(through)
    assert 200 == world.worker.ask("DELETE", "/session").status_code
    assert [] == world.browsers()


def test_a_killed_browser_is_a_disconnected_session(world):
    ready(world.worker, world.red)
    for pid in world.browsers():
        os.kill(pid, signal.SIGKILL)
    until(world.worker, "disconnected")

    assert "the browser of this session is gone" == told(world)["error"]
    assert 409 == world.worker.ask("POST", "/scrape", asking()).status_code
    assert [] == world.browsers()


def test_a_proxy_that_does_not_know_us_disconnects(world):
    begin_session(world.worker, world.red, "wrong")
    until(world.worker, "disconnected")

    assert "site: answered 407" == told(world)["error"]
    assert [] == world.browsers()


def test_without_playwright_it_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "retoma.programs.worker.browser", raising=False)
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    with pytest.raises(Stop) as stopped:
        _browser(None)

    assert Exit.UNAVAILABLE == stopped.value.code
    assert "pip install 'retoma[browser]'" in str(stopped.value)


def test_without_a_chromium_it_says_how_to_get_one(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    with pytest.raises(Stop) as stopped:
        _browser(None)

    assert Exit.UNAVAILABLE == stopped.value.code
    assert "apt-get install chromium" in str(stopped.value)


def test_a_program_that_is_not_there_is_said_before_anything_starts(tmp_path):
    missing = str(tmp_path / "chromium")
    with pytest.raises(Stop) as stopped:
        _browser(missing)

    assert Exit.USAGE == stopped.value.code
    assert missing in str(stopped.value)
