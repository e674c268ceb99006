"""`retoma runner`: finds the app or says why not, drains when told to, keeps its children alive."""

import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from retoma.cli.runner import load
from retoma.console.exits import Exit, Stop
from retoma.engine.rules.states import State
from tests import nursery
from tests.cli.conftest import PATIENCE, pause, started, wait_for, with_app

APP = """
import asyncio
from pathlib import Path
from retoma import Context, Retoma

app = Retoma("sqlite:///work.db")
not_an_app = 7


@app.job
async def nap(ctx: Context, seconds: float) -> float:
    async def lie_down() -> float:
        ctx.log.info("lying down")
        await asyncio.sleep(seconds)
        return seconds

    return await ctx.step("nap", lie_down)


@app.job
async def wait(ctx: Context, file: str) -> None:
    while not Path(file).exists():
        await asyncio.sleep(0.02)


@app.job
def add(numbers: list[int]) -> int:
    return sum(numbers)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("RETOMA_") and "TEST" not in name:
            monkeypatch.delenv(name)
    (tmp_path / "naps.py").write_text(APP)
    (tmp_path / "broken.py").write_text("import nowhere_to_be_found")
    return tmp_path


@pytest.fixture
def url(folder: Path) -> str:
    return f"sqlite:///{folder / 'work.db'}"


def submit(folder: Path, kind: str, payloads: Sequence[object]) -> None:
    """As an operator's script would."""
    script = (
        "import asyncio, json, sys; from naps import app\n"
        "async def go():\n"
        "    await app.submit_many(sys.argv[1], json.loads(sys.argv[2]))\n"
        "    await app.close()\n"
        "asyncio.run(go())"
    )
    nursery.run(
        [sys.executable, "-c", script, kind, json.dumps(payloads)], cwd=folder, check=True
    )


def counts(url: str) -> dict[State, int]:
    found: dict[State, int] = with_app(url, lambda app: app.insights.counts())
    return found


def leaves(url: str) -> bool:
    """Whether a runner has begun to leave: it claims nothing more, and waits for its jobs."""
    found = with_app(url, lambda app: app.runners.list())
    return "leaving" in [each.state for each in found]


def pids(url: str) -> dict[str, int]:
    """Runners that live, by name."""
    found = with_app(url, lambda app: app.runners.list())
    return {each.name: each.pid for each in found if each.state == "alive"}


# — finding the app —


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("naps", "names no app"),
        ("naps:", "names no app"),
        (":app", "names no app"),
        ("nothing:app", "no module 'nothing'"),
        ("nothing.deep:app", "no module 'nothing'"),
        ("naps:gone", "naps has no 'gone'"),
        ("naps:not_an_app", "is a int, not a Retoma"),
    ],
)
def test_an_app_that_is_not_there_is_a_usage_error(folder, address, complaint):
    with pytest.raises(Stop, match=complaint) as stop:
        load(address)

    assert Exit.USAGE == stop.value.code


def test_a_module_that_is_missing_inside_the_app_is_the_apps_own_error(folder):
    with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
        load("broken:app")


def test_a_wrong_app_ends_every_process_with_usage(folder):
    done = started("runner", "--app", "naps:gone", "--processes", "2", folder=folder)
    _, err = done.communicate(timeout=PATIENCE)

    assert 2 == done.returncode
    assert "naps has no 'gone'" in err
    assert "Traceback" not in err


# — one runner —


def test_until_idle_runs_what_waits_also_in_children_and_every_line_is_json(folder, url):
    submit(folder, "add", [[1, 2], [3, 4]])
    submit(folder, "nap", [0.01])

    done = started(
        "runner", "--app", "naps:app", "--until-idle", "--name", "ana", folder=folder
    )
    _, err = done.communicate(timeout=PATIENCE)

    assert 0 == done.returncode, err
    lines = [json.loads(line) for line in err.splitlines()]
    assert "ana" in [line.get("name") for line in lines]
    (lying,) = [line for line in lines if line["event"] == "lying down"]
    assert {"job", "batch", "kind", "attempt", "epoch", "correlation", "runner", "status"} <= {
        *lying
    }
    assert {State.DONE: 3} == counts(url)


def test_e29_sigterm_lets_running_jobs_finish_and_leaves_with_zero(folder, url):
    submit(folder, "wait", ["open"] * 2)
    runner = started("runner", "--app", "naps:app", folder=folder)
    wait_for(lambda: counts(url).get(State.RUNNING) == 2, "both should run")

    runner.send_signal(signal.SIGTERM)
    wait_for(lambda: leaves(url), "it should leave")
    (folder / "open").touch()
    _, err = runner.communicate(timeout=PATIENCE)

    assert 0 == runner.returncode, err
    assert {State.DONE: 2} == counts(url)


def test_e29_what_does_not_finish_in_the_grace_is_given_back_with_no_attempt_lost(folder, url):
    submit(folder, "nap", [60])
    environment = {"RETOMA_GRACE": "200ms"}
    runner = started("runner", "--app", "naps:app", folder=folder, environment=environment)
    wait_for(lambda: counts(url).get(State.RUNNING) == 1, "it should run")

    runner.send_signal(signal.SIGINT)
    _, err = runner.communicate(timeout=PATIENCE)

    assert 0 == runner.returncode, err
    job = with_app(url, lambda app: app.get(1))
    assert (State.WAITING, 0) == (job.state, job.failures)


def test_a_second_ctrl_c_leaves_at_once(folder, url):
    submit(folder, "nap", [60])
    runner = started("runner", "--app", "naps:app", folder=folder)
    wait_for(lambda: counts(url).get(State.RUNNING) == 1, "it should run")

    runner.send_signal(signal.SIGINT)
    pause(0.3)
    assert runner.poll() is None
    runner.send_signal(signal.SIGINT)
    runner.communicate(timeout=PATIENCE)

    assert 130 == runner.returncode


# — several —


def test_a_runner_that_is_killed_is_started_again_and_all_leave_together(folder, url):
    parent = started("runner", "--app", "naps:app", "--processes", "2", folder=folder)
    wait_for((folder / "work.db").exists, "a runner makes the database")
    wait_for(lambda: set(pids(url)) == {"runner-1", "runner-2"}, "two should live")
    before = pids(url)

    os.kill(before["runner-2"], signal.SIGKILL)
    wait_for(lambda: pids(url).get("runner-2") not in (None, before["runner-2"]), "again")
    parent.send_signal(signal.SIGTERM)
    _, err = parent.communicate(timeout=PATIENCE)

    assert 0 == parent.returncode, err
    died = [json.loads(line) for line in err.splitlines() if "runner.died" in line]
    assert [("runner-2", -9)] == [(line["name"], line["exit"]) for line in died]
    assert {} == pids(url)


def test_when_the_parent_is_killed_its_runners_leave_too(folder, url):
    parent = started("runner", "--app", "naps:app", "--processes", "2", folder=folder)
    wait_for((folder / "work.db").exists, "a runner makes the database")
    wait_for(lambda: len(pids(url)) == 2, "two should live")
    children = pids(url).values()

    parent.kill()
    parent.communicate(timeout=PATIENCE)

    wait_for(lambda: not any(alive(pid) for pid in children), "they should have left")
    assert {} == pids(url)


def alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return not re.search(r"\) [ZX]", text)
