"""What finds a mutant: a test, a universe of the simulation, or a cell of the fault sweep.

Each is played in a process of its own that imports the tree it is given, and so do the children of that
process. `because` is a pattern that the finding must show: a mutant that breaks an import kills nothing.
"""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.edit import ROOT

TREE = "RETOMA_MUTANT_TREE"  # the folder from which `retoma` must have been imported
REPORT = "RETOMA_MUTANT_REPORT"  # the file into which `tests.mutants.witness` writes
LIMIT = 240.0  # seconds without a word until a process is ended: pytest says one for each test
HANG = 60  # seconds until a test that hangs on a mutant has failed
SHOWN = 1_500  # characters of an output


@dataclass(frozen=True, slots=True)
class Finding:
    """What a killer said of a tree; red: it found something wrong, for the reason it should."""

    red: bool
    green: bool  # it ran and found nothing wrong
    seconds: float
    cpu: float
    said: str
    by: str  # which test, seed or cell
    seed: int = 0  # of the universe, where it was one

    @property
    def told(self) -> str:
        """The last line of what was said."""
        return next((line for line in reversed(self.said.splitlines()) if line.strip()), "")


class Killer(ABC):
    """A way to find out that something is broken."""

    because: str

    @property
    @abstractmethod
    def name(self) -> str:
        """How it is called in a table."""

    @abstractmethod
    def play(self, tree: Path, *options: str) -> Finding:
        """Try the tree. `options`: of pytest."""


@dataclass(frozen=True, slots=True)
class ByTest(Killer):
    """A test, in all its variants unless one is named. It must fail on each database it is run on."""

    node: str
    because: str = "[Aa]ssert|DID NOT RAISE"

    @property
    def name(self) -> str:
        return self.node

    def play(self, tree: Path, *options: str) -> Finding:
        return play_tests([self], tree, f"--timeout={HANG}", *options)[self]


@dataclass(frozen=True, slots=True)
class ByUniverses(Killer):
    """ByUniverses of the simulation from `seed` on; the first in which a promise is broken counts."""

    seed: int
    because: str = ""
    most: int = 1_000
    scenario: str = "tests.simulation.world:scenario"

    def play(self, tree: Path, *_: str) -> Finding:
        arguments = [self.scenario, str(self.seed), str(self.most)]
        ran = run([sys.executable, "-m", "tests.mutants.universes", *arguments], tree)
        report = next(
            map(json.loads, re.findall(r'^{"seed".*}$', ran.output, re.MULTILINE)), None
        )
        if report is None:
            return Finding(False, False, ran.seconds, ran.cpu, ran.shown, self.name)
        told = "\n".join(report["violations"])
        red = bool(told) and re.search(self.because, told) is not None
        by = f"./run prove --universes 1 --seed {report['seed']} (universe {report['played']})"
        shown = told[:SHOWN]
        return Finding(red, not told, ran.seconds, ran.cpu, shown, by, report["seed"])

    def alone(self, seed: int) -> "ByUniverses":
        return ByUniverses(seed, self.because, 1, self.scenario)

    @property
    def name(self) -> str:
        return f"universes from seed {self.seed}"


@dataclass(frozen=True, slots=True)
class ByCell(Killer):
    """One cell of `./run prove`."""

    cell: str
    because: str = ""

    @property
    def name(self) -> str:
        return f"./run prove --cell '{self.cell}'"

    def play(self, tree: Path, *_: str) -> Finding:
        ran = run([sys.executable, "-m", "tests.prove", "--cell", self.cell], tree)
        red = "VIOLATION" in ran.output and re.search(self.because, ran.output) is not None
        return Finding(red, ran.code == 0, ran.seconds, ran.cpu, ran.shown, self.name)


@dataclass(frozen=True, slots=True)
class Ran:
    """A process that has ended."""

    code: int
    output: str
    seconds: float
    cpu: float

    @property
    def shown(self) -> str:
        return self.output[-SHOWN:]


def play_tests(tests: Sequence[ByTest], tree: Path, *options: str) -> dict[ByTest, Finding]:
    """Run tests in one process; what each of them said."""
    if not tests:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        ran = run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.witness"),
                *("-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=short"),
                *options,
                *dict.fromkeys(test.node for test in tests),
            ],
            tree,
            **{REPORT: str(report)},
        )
        told = json.loads(report.read_text()) if report.is_file() else {}
    return {test: _finding_of(test, told, ran) for test in tests}


def _finding_of(test: ByTest, told: dict[str, str | None], ran: Ran) -> Finding:
    """`told`: what each test that ran has failed with, None where it passed."""
    own = {
        node: failure
        for node, failure in told.items()
        if node == test.node or node.startswith((f"{test.node}[", f"{test.node}::"))
    }
    failures = [failure for failure in own.values() if failure is not None]
    right = {
        node for node, failure in own.items() if failure and re.search(test.because, failure)
    }
    return Finding(
        red=bool(right) and {*map(_database_of, own)} == {*map(_database_of, right)},
        green=bool(own) and not failures,
        seconds=ran.seconds,
        cpu=ran.cpu,
        said="\n".join(failures)[-SHOWN:] if own else ran.shown,
        by=test.node,
    )


def _database_of(node: str) -> str:
    """On which database a test was run, as its name says; nothing where it needs none."""
    return next((each for each in ("sqlite", "postgres") if each in node.partition("[")[2]), "")


def run(command: Sequence[str], tree: Path, **environment: str) -> Ran:
    """Run a command of the checkout on a tree, and end all of it when its time is over."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env |= {"PYTHONPATH": str(tree), TREE: str(tree), **environment}
    began, cpu = time.monotonic(), _cpu()
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        said = -1
        try:
            while process.poll() is None and said < (said := os.fstat(output.fileno()).st_size):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(LIMIT)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        output.seek(0)
        text = output.read()
    return Ran(code, text, time.monotonic() - began, _cpu() - cpu)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
