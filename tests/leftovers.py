"""Fail a run of the tests that leaves something behind: files, processes, shared memory, databases.

A run has a temp folder of its own, and every process that it starts carries its mark in the environment. So
what is found at the end is this run's own, whoever else works on this machine. What the tests write lies in
memory where it can, in a folder that `mkdtemp` names: no other user can take that name first.
"""

import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from retoma.engine.isolation import scratch

MARK = "RETOMA_TEST_RUN"
TEMP_ROOT = "PYTEST_DEBUG_TEMPROOT"  # where pytest makes its folders, named after the user
TESTS = "retoma-tests-"
KEPT_RUNS = 3  # folders of failed runs, as pytest keeps them
PROCESSES = Path("/proc")
MEMORY = Path("/dev/shm")  # noqa: S108  # looked at, never written
SHARED = ("sem.", "psm_", "PostgreSQL.", ".org.chromium.")  # what programs of ours call it
PATIENCE = 5.0  # seconds for processes that were told to end
LOOK = 0.2
SHOWN = 40
OURS = ("tests.nursery", "multiprocessing.resource_tracker")  # end with who started them
KEPT = (  # by tools for the next run; the programs that a first run fetches
    *("__pycache__/", ".pytest_cache/", ".hypothesis/", ".mypy_cache/", ".ruff_cache/"),
    *(".import_linter_cache/", ".egg-info/", "node_modules/", "vendor/"),
)
SOURCES = (
    "src/",
    "tests/",
    "bench/",
    "docs/",
    "examples/",
    "deploy/",
)  # somebody may be writing them


@dataclass(slots=True)
class Run:
    """One run of the tests: its folder, its mark, and what was there before it."""

    folder: Path
    root: Path
    mark: str
    memory: frozenset[str]
    checkout: frozenset[str]
    beside_another: bool = False  # when it began
    tests: Path | None = None  # what the tests write; None: pytest's folders lie in `temp`
    close: list[Callable[[], Sequence[str]]] = field(default_factory=list)
    found: list[str] = field(default_factory=list)

    @property
    def temp(self) -> Path:
        return self.folder / "temp"

    @property
    def journals(self) -> Path:
        return self.folder / "journals"


def begin(config: pytest.Config, memory: Path | None = None) -> Run:
    """Give the run its folder; it goes with this process, or with the next run where that was killed.

    `memory`: the folder that shall hold what the tests write, unless `TEMP_ROOT` names one.
    """
    scratch.sweep()
    root = config.rootpath
    mark = secrets.token_hex(8)
    run = Run(scratch._made(), root, mark, names_in(MEMORY), changed_files(root))
    run.beside_another = is_beside_another(mark)
    if memory is not None and TEMP_ROOT not in os.environ:
        run.tests = make_tests_folder(memory)
        os.environ[TEMP_ROOT] = str(run.tests)
    for folder in (run.folder, run.temp, run.journals):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o711)  # PostgreSQL's user walks through
    os.environ |= {MARK: run.mark, "TMPDIR": str(run.temp)}
    tempfile.tempdir = None  # asked anew
    config.pluginmanager.register(Leftovers(run), "leftovers")
    return run


def make_tests_folder(parent: Path) -> Path:
    """Make a folder for what the tests write. The oldest ones of this user's earlier runs go."""
    earlier = [parent / name for name in names_in(parent) if name.startswith(TESTS)]
    newest_first = sorted(earlier, key=lambda each: each.lstat().st_mtime, reverse=True)
    for each in newest_first[KEPT_RUNS:]:
        scratch._removed(each)  # unless its run still holds the lock
    folder = Path(tempfile.mkdtemp(prefix=TESTS, dir=parent))
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(held, fcntl.LOCK_EX)  # until this process ends
    return folder


class Leftovers:
    """Looks when all workers have ended."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @pytest.hookimpl(
        wrapper=True, trylast=True
    )  # within the terminal's, which then tells of it
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        yield
        for close in self._run.close:
            self._run.found += close()
        self._run.found += leftovers(self._run)
        if self._run.found and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self._run.tests is not None and session.exitstatus == pytest.ExitCode.OK:
            shutil.rmtree(self._run.tests, ignore_errors=True)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._run.tests is not None and self._run.tests.exists():
            terminalreporter.write_line(f"What failed tests wrote is in {self._run.tests}")
        if self._run.found:
            terminalreporter.section("left behind by this run", red=True)
            for each in self._run.found[:SHOWN]:
                terminalreporter.write_line(each)
            if more := len(self._run.found) - SHOWN:
                terminalreporter.write_line(f"and {more} more" if more > 0 else "")


def leftovers(run: Run) -> list[str]:
    """A line for each thing that is still there; the processes among them are ended."""
    found = [f"process {pid}: {words}" for pid, words in end_processes(run).items()]
    scratch.sweep()  # folders of killed processes are removed by the next process
    for each in sorted(names_in(run.temp, mine(run))):
        found.append(f"in the temp folder: {each}")
        found += first_lines(run.temp / each)
    found += [f"shared memory: {each}" for each in sorted(unused_memory(run))]
    found += [
        f"in the checkout: {each}" for each in sorted(changed_files(run.root) - run.checkout)
    ]
    return found


def mine(run: Run) -> frozenset[str]:
    """What this process has in the temp folder and takes along at its own end."""
    return frozenset(
        each.name for each in scratch._ours.values() if each.is_relative_to(run.temp)
    )


def names_in(folder: Path, but: frozenset[str] = frozenset()) -> frozenset[str]:
    """What this user has there; pytest clears its own folders."""
    found = set()
    with suppress(OSError):
        for each in folder.iterdir():
            with suppress(OSError):
                if each.lstat().st_uid == os.geteuid() and not each.name.startswith("pytest-"):
                    found.add(each.name)
    return frozenset(found) - but


def first_lines(folder: Path) -> list[str]:
    """What a folder holds, and the stacks that a process has left there and nobody has come for."""
    lines = [f"  {each.relative_to(folder)}" for each in sorted(folder.rglob("*"))[:SHOWN]]
    for each in folder.glob(f"{scratch.KEEP}*"):
        lines += [f"  {each.name}:", *each.read_text(errors="replace").splitlines()[:SHOWN]]
    return lines


def unused_memory(run: Run) -> set[str]:
    """What our programs make there, that is new, and that no process has any more.

    Nothing of it tells which run has made it: beside another run of the tests nobody is blamed.
    """
    return set() if run.beside_another or is_beside_another(run.mark) else unmapped_memory(run)


def is_beside_another(mark: str) -> bool:
    """Tell whether a process of another run of the tests lives."""
    begin, ours = f"{MARK}=".encode(), f"{MARK}={mark}".encode()
    return any(
        each.startswith(begin) and each != ours
        for pid in numbers()
        for each in environment_of(pid)
    )


def unmapped_memory(run: Run) -> set[str]:
    new = names_in(MEMORY) - run.memory
    found = {each for each in new if each.startswith(SHARED)}
    for pid in numbers() if found else ():
        with suppress(OSError):
            maps = (PROCESSES / str(pid) / "maps").read_text()
            found -= {each for each in found if f"{MEMORY}/{each}" in maps}
    return found


def changed_files(root: Path) -> frozenset[str]:
    """Files of the checkout that are not under version control, also ignored ones."""
    told = subprocess.run(
        ["git", "status", "--porcelain", "--ignored", "-z"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    found = (line.partition(" ")[2] for line in told.split("\0") if line[:2] in ("??", "!!"))
    return frozenset(
        each
        for each in found
        if not each.endswith(KEPT) and not (each.startswith(SOURCES) and "." in each)
    )


# — processes —


def end_processes(run: Run) -> dict[int, str]:
    """Kill the processes of this run that do not end by themselves; their commands."""
    until = time.monotonic() + PATIENCE
    while (found := processes_of(run)) and time.monotonic() < until:
        time.sleep(LOOK)  # noqa: TID251 — nobody tells of the end of a process that is not our child
    left = {pid: words for pid in found if (words := words_of(pid))}
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return left


def processes_of(run: Run) -> list[int]:
    """All that carry its mark or work in its folder, but for this process and those that go with it."""
    return [
        pid
        for pid in numbers()
        if pid != os.getpid() and not goes_with_us(pid) and belongs_to(pid, run)
    ]


def numbers() -> list[int]:
    return [int(each.name) for each in PROCESSES.iterdir() if each.name.isdecimal()]


def belongs_to(pid: int, run: Run) -> bool:
    with suppress(OSError):
        if f"{MARK}={run.mark}".encode() in environment_of(pid):
            return True
        return (PROCESSES / str(pid) / "cwd").readlink().is_relative_to(run.folder)
    return False


def goes_with_us(pid: int) -> bool:
    """What ends with this process: the one that forks for its tests, the one that keeps its semaphores."""
    with suppress(OSError):
        status = (PROCESSES / str(pid) / "stat").read_text().rpartition(") ")[2].split()
        is_ours = any(each in words_of(pid) for each in OURS)
        return int(status[1]) == os.getpid() and is_ours
    return False


def environment_of(pid: int) -> list[bytes]:
    with suppress(OSError):
        return (PROCESSES / str(pid) / "environ").read_bytes().split(b"\0")
    return []


def words_of(pid: int) -> str:
    """Its command; empty where it has ended, also where nobody has asked how."""
    with suppress(OSError):
        words = (PROCESSES / str(pid) / "cmdline").read_bytes()
        return words.replace(b"\0", b" ").decode(errors="replace").strip()[:200]
    return ""
