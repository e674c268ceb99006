"""The server and both services as programs of their own, with what they take of memory and what a person waits meanwhile."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.cost.family import MEBIBYTE
from tests.cost.probe import Answer
from tests.house.files import ROOT
from tests.web.aids import ROOT_KEY

MEMORY = (
    512 * MEBIBYTE
)  # that a program has at its peak: in a container of so much nothing is killed
PATIENCE = 120.0
LISTENS = re.compile(r"http://127\.0\.0\.1:(\d+)")
PEAK = re.compile(r"VmHWM:\s+(\d+) kB")
KEYED = {"x-api-key": ROOT_KEY}


@dataclass(slots=True)
class Program:
    """One that listens."""

    child: "subprocess.Popen[bytes]"
    port: int
    log: Path
    answers: list[Answer] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def peak(self) -> int:
        """Bytes of memory at most so far."""
        text = Path(f"/proc/{self.child.pid}/status").read_text(encoding="ascii")
        found = PEAK.search(text)
        assert found is not None
        return int(found[1]) * 1024

    @contextmanager
    def probed(self, path: str, headers: dict[str, str] = KEYED) -> Iterator[None]:
        """While the block runs one person asks for this page all the time."""
        command = [sys.executable, "-m", "tests.cost.probe", str(self.child.pid)]
        probe = subprocess.Popen(
            [*command, self.origin, path, json.dumps(headers)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert probe.stdout is not None
        try:
            assert b"asks\n" == probe.stdout.readline()
            yield
        finally:
            told, _ = probe.communicate(timeout=PATIENCE)
        self.answers = [Answer(**each) for each in json.loads(told)]


@contextmanager
def program(
    folder: Path, *words: str, module: str = "retoma", **environment: str
) -> Iterator[Program]:
    """`retoma …`, or another module called so, until the block ends."""
    log = folder / f"{words[0]}.log"
    with log.open("wb") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", module, *words, "--port", "0"],
            cwd=ROOT,
            env={
                **os.environ,
                "RETOMA_DATABASE_URL": f"sqlite:///{folder / words[0]}.db",
                "RETOMA_API_KEY": ROOT_KEY,
                "TMPDIR": str(folder),
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Program(child, _port(child, log), log)
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
        child.wait(PATIENCE)


def _port(child: "subprocess.Popen[bytes]", log: Path) -> int:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and child.poll() is None:
        if found := LISTENS.search(log.read_text()):
            return int(found[1])
        time.sleep(0.05)  # noqa: TID251 — this waits for a fact
    raise AssertionError(f"it does not listen:\n{log.read_text()[-3000:]}")
