"""A test process that is lost says why, and a run of the tests leaves nothing behind."""

import getpass
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import leftovers
from tests.house.files import ROOT
from tests.leftovers import KEPT_RUNS, TEMP_ROOT, TESTS

CONFTEST = """
from pathlib import Path

from tests import leftovers, lost_workers

def pytest_configure(config):
    if hasattr(config, "workerinput"):
        lost_workers.register_in_worker(config)
        return
    run = leftovers.begin(config, Path(__file__).parents[1] / "memory")
    if config.option.numprocesses:
        lost_workers.register(config, run.journals, run.temp)
"""
DYING = """
import asyncio, faulthandler, os, signal, socket, sys, time

def test_leaves():
    print("last words", file=sys.stderr, flush=True)
    os._exit(3)

def test_is_killed():
    os.kill(os.getpid(), signal.SIGKILL)

def test_aborts():
    os.abort()

def test_writes_to_who_has_left():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    ours, theirs = socket.socketpair()
    theirs.close()
    ours.send(b"event")

def test_holds_its_loop():
    from retoma.engine.ops.loop_watchdog import LoopWatch

    async def hold():
        with LoopWatch("held", 0.3):
            time.sleep(60)

    asyncio.run(hold())
"""
CLEAN = """
import tempfile

def test_cleans_up():
    with tempfile.TemporaryDirectory() as folder:
        assert folder
"""
UNTIDY = """
import subprocess, sys, tempfile

def test_is_untidy():
    tempfile.mkdtemp(prefix="forgotten-")
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
"""
STRAY = """
from pathlib import Path

def test_writes_beside_itself():
    (Path(__file__).parent / "stray.txt").touch()
    fetched = Path(__file__).parent / "node_modules"
    fetched.mkdir()
    (fetched / "program").touch()
"""
WRITING = """
def test_writes(tmp_path):
    (tmp_path / "written").touch()
"""
FAILING = WRITING + "    assert False\n"
WAITING = """
import tempfile, time

def test_waits():
    print(tempfile.mkdtemp(prefix="of-the-killed-"), flush=True)
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "inner").mkdir()
    for name in ("temp", "memory"):
        (tmp_path / name).mkdir()
    (tmp_path / "inner" / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "inner" / "conftest.py").write_text(CONFTEST)
    return tmp_path


def started(folder: Path, test: str, *options: str) -> "subprocess.Popen[str]":
    (folder / "inner" / "test_inner.py").write_text(test)
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        cwd=folder / "inner",
        env={
            **{each: value for each, value in os.environ.items() if each != TEMP_ROOT},
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
            "TMPDIR": str(folder / "temp"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(folder: Path, test: str, *options: str) -> tuple[int, str]:
    with started(folder, test, *options) as process:
        out, _ = process.communicate(timeout=100)
    return process.returncode, out


def report_of(out: str, test: str) -> str:
    """What stands in the report of one lost test."""
    begin = out.index(f"crashed while running 'test_inner.py::{test}'")
    return out[begin:].partition("\n___")[0].partition("\n===")[0]


def test_a_lost_process_says_how_it_ended_and_what_it_did_last(folder):
    code, out = run(folder, DYING, "-n1", "--max-worker-restart=9")

    assert 1 == code, out
    told = {
        "leaves": "ended with exit code 3",
        "is_killed": "was ended by SIGKILL",
        "aborts": "was ended by SIGABRT",
        "writes_to_who_has_left": "was ended by SIGPIPE",
        "holds_its_loop": "ended with exit code 1",
    }
    for test, end in told.items():
        report = report_of(out, f"test_{test}")
        assert end in report
        assert "for memory since this run began" in report
        assert f"test_inner.py::test_{test} (peak memory " in report
    assert "last words" in report_of(out, "test_leaves")
    assert "in test_aborts" in report_of(out, "test_aborts")
    assert "in hold" in report_of(out, "test_holds_its_loop")


@pytest.mark.parametrize("options", [[], ["-n1"]])
def test_a_run_that_leaves_nothing_is_green(folder, options):
    code, out = run(folder, CLEAN, *options)

    assert 0 == code, out
    assert "left behind" not in out
    assert [] == list((folder / "temp").iterdir())


@pytest.mark.parametrize("options", [[], ["-n1"]])
def test_a_run_that_leaves_something_is_red_and_it_is_gone(folder, options):
    code, out = run(folder, UNTIDY, *options)

    assert 1 == code, out
    assert "1 passed" in out
    _, _, left = out.partition("left behind by this run")
    assert "in the temp folder: forgotten-" in left
    process = next(line for line in left.splitlines() if "time.sleep(600)" in line)
    pid = int(process.removeprefix("process ").partition(":")[0])
    assert (
        not Path(f"/proc/{pid}/cmdline").exists()
        or not Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    assert [] == list((folder / "temp").iterdir())


def test_a_file_in_the_checkout_is_left_behind_and_a_program_that_was_fetched_is_not(folder):
    subprocess.run(["git", "init", "--quiet", folder / "inner"], check=True)

    code, out = run(folder, STRAY)

    assert 1 == code, out
    assert "in the checkout: stray.txt" in out
    assert "node_modules" not in out


def test_what_a_killed_run_left_goes_with_the_next(folder):
    with started(folder, WAITING, "-s") as process:
        assert process.stdout is not None
        left = next(line for line in process.stdout if "of-the-killed-" in line)
        process.send_signal(signal.SIGKILL)
    assert Path(left[left.index("/") :].strip()).is_dir()

    code, out = run(folder, CLEAN)

    assert 0 == code, out
    assert [] == list((folder / "temp").iterdir())


@pytest.mark.parametrize("options", [[], ["-n1"]])
def test_a_user_who_takes_the_names_of_pytest_first_breaks_no_run(folder, options):
    for user in (getpass.getuser(), "unknown"):
        (folder / "memory" / f"pytest-of-{user}").touch()

    code, out = run(folder, WRITING, *options)

    assert 0 == code, out
    assert "1 passed" in out
    assert not list((folder / "memory").glob(f"{TESTS}*"))


def test_what_failed_tests_wrote_is_kept_of_the_last_runs(folder):
    for _ in range(KEPT_RUNS + 2):
        code, out = run(folder, FAILING)
        assert 1 == code, out

    kept = list((folder / "memory").glob(f"{TESTS}*"))
    assert KEPT_RUNS + 1 == len(kept), "those, and that of the run itself"
    assert all(list(each.rglob("written")) for each in kept)
    assert f"What failed tests wrote is in {max(kept, key=written_at)}" in out


def written_at(folder: Path) -> float:
    return folder.stat().st_mtime


def test_shared_memory_is_nobodys_fault_beside_another_run(tmp_path):
    """A process that another run had killed left a semaphore, and this run was red."""
    this = leftovers.Run(tmp_path, tmp_path, "this run", frozenset(), frozenset())
    made = leftovers.MEMORY / f"psm_{secrets.token_hex(8)}"
    another = subprocess.Popen(
        [sys.executable, "-c", "input()"],
        env=os.environ | {leftovers.MARK: "another run"},
        stdin=subprocess.PIPE,
    )
    try:
        made.touch()
        assert made.name in leftovers.unmapped_memory(this)
        assert made.name not in leftovers.unused_memory(this)
        assert leftovers.is_beside_another(this.mark)
    finally:
        made.unlink()
        another.communicate()
