"""Keep what a lost test process leaves: how it ended, what it ran, what it wrote, how much memory it had.

xdist says of a worker that ends in the middle of a test only "Not properly terminated". Each worker keeps a
journal in a folder of the run; when it is lost, the controller puts the journal, the exit status and the
last lines of the worker into the report of the test.
"""

import faulthandler
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pytest

LINES = 40  # of what it wrote, from its end
STACKS = 200  # lines of stacks, from their beginning
TESTS = 5
PATIENCE = 10.0  # seconds for a process whose pipe has ended to end itself
SPACE = " " * 4
OOM_COUNTERS = (Path("/proc/vmstat"), Path("/sys/fs/cgroup/memory.events"))


def register(config: pytest.Config, folder: Path, temp: Path) -> None:
    """In the controller: where the journals lie, and where the workers have their temp files."""
    config.pluginmanager.register(LostWorkers(folder, temp), "lost-workers")


def register_in_worker(config: Any) -> None:
    config.pluginmanager.register(
        Journal(Path(config.workerinput["journals"]), config.workerinput["workerid"]), "journal"
    )


class Journal:
    """A worker's own: the tests it begins, its memory, and the stacks of a fatal signal."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._tests = (folder / f"{worker}.tests").open("w", buffering=1)
        self._stacks = (folder / f"{worker}.stacks").open("w")

    @pytest.hookimpl(trylast=True)  # pytest itself sends the stacks to the terminal
    def pytest_sessionstart(self) -> None:
        faulthandler.enable(self._stacks)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        self._tests.write(f"{time.strftime('%H:%M:%S')} {nodeid} (peak memory {peak} MiB)\n")


class LostWorkers:
    """The controller's: reports each worker that ended before it was told to."""

    def __init__(self, folder: Path, temp: Path) -> None:
        self._folder = folder
        self._temp = temp
        self._killed_before = killed_for_memory()
        self._written: dict[str, list[IO[bytes]]] = {}
        self._lost: dict[str, str] = {}

    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["journals"] = str(self._folder)

    def pytest_testnodeready(self, node: Any) -> None:
        self._written[node.gateway.id] = list(captured_files(process_of(node)))

    def pytest_testnodedown(self, node: Any, error: object) -> None:
        written = self._written.pop(node.gateway.id, [])
        if error:
            self._lost[node.gateway.id] = self._account(node, written)
        for each in written:
            each.close()

    def pytest_handlecrashitem(self, report: Any) -> None:
        report.longrepr += "\n" + self._lost.pop(report.node.gateway.id, "")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Those that were lost between two tests."""
        for worker, account in self._lost.items():
            terminalreporter.section(f"lost worker {worker}", red=True)
            terminalreporter.write_line(account)

    def _account(self, node: Any, written: list[IO[bytes]]) -> str:
        worker = node.gateway.id
        killed = killed_for_memory() - self._killed_before
        told = [
            f"its process {end_of(process_of(node))}",
            f"the kernel has killed {killed} processes for memory since this run began; {free_memory()}",
        ]
        for what, lines in (
            ("the last tests it began", lines_of(self._folder / f"{worker}.tests")[-TESTS:]),
            ("its stacks", lines_of(self._folder / f"{worker}.stacks")[:STACKS]),
            *(("what it wrote last", read_again(each)[-LINES:]) for each in written),
            *(
                (f"stacks in {each.name}", lines_of(each)[:STACKS])
                for each in self._watchdog_stacks()
            ),
        ):
            if lines:
                told += [f"{what}:", *(SPACE + line for line in lines)]
        return "\n".join(told)

    def _watchdog_stacks(self) -> list[Path]:
        """Of a loop that was held for too long: its process leaves with exit code 1 and says nothing."""
        return sorted(self._temp.glob("retoma-scratch-*/keep-*"))


def process_of(node: Any) -> "subprocess.Popen[bytes] | None":
    process: subprocess.Popen[bytes] | None = getattr(node.gateway._io, "popen", None)
    return process


def end_of(process: "subprocess.Popen[bytes] | None") -> str:
    if process is None:
        return "is not of this machine"
    try:
        code = process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        return f"{process.pid} still runs"
    if code >= 0:
        return f"{process.pid} ended with exit code {code}"
    return f"{process.pid} was ended by {signal.Signals(-code).name}"


def captured_files(process: "subprocess.Popen[bytes] | None") -> Iterator[IO[bytes]]:
    """Where pytest captures what a worker writes; files without a name, which would go with the worker."""
    if process is None:
        return
    with suppress(OSError):
        for each in sorted(Path(f"/proc/{process.pid}/fd").iterdir()):
            if str(each.readlink()).endswith(" (deleted)"):
                yield each.open("rb")


def read_again(file: IO[bytes]) -> list[str]:
    file.seek(0)
    return file.read().decode(errors="replace").splitlines()


def lines_of(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def killed_for_memory() -> int:
    """How many processes the kernel has killed, here or in this control group, whichever says more."""
    found = [0]
    for path in OOM_COUNTERS:
        with suppress(OSError):
            for line in path.read_text().splitlines():
                name, _, number = line.partition(" ")
                if name == "oom_kill":
                    found.append(int(number))
    return max(found)


def free_memory() -> str:
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return f"{int(line.split()[1]) >> 10} MiB are free; {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    return "how much memory is free is not known"
