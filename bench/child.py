"""One measurement, one process: nothing that ran before can warm it or burden it.

    answer  = call("bench.peers.peer_huey:drain", path="…")
    answers = together(2, "bench.ours:drain", url="…")          # through one gate at the same moment

A child imports, says it is ready, waits for the gate, runs, and answers with one line of JSON. Its
standard output is kept for that line alone; whatever a library prints goes to standard error.
"""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parent.parent
LIMIT = 180.0  # seconds; no single measurement may hold the bench longer
READY = "ready"
LAST_WORDS = 700  # characters of a failed child's standard error: the end of its traceback


class Failed(Exception):
    """A measurement that ended without an answer; the message holds what its process last said."""


class Child:
    """A process that stands at the gate with everything imported."""

    def __init__(self, function: str, arguments: dict[str, Any]) -> None:
        self._function = function
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the child
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.child", function, json.dumps(arguments)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,  # some peers fork: the whole family is ended together
        )

    def __enter__(self) -> "Child":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Only our own family: the group was made for this child, and its number is still the child's.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._errors.close()

    def wait_until_ready(self) -> None:
        if self._line() != READY:
            raise Failed(f"{self._function} did not start:\n{self.last_words()}")

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """As the kernel does when memory is short: no last word, no clean-up."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def send(self, sign: signal.Signals) -> None:
        """Send a signal to the whole family, for example SIGSTOP."""
        os.killpg(self._process.pid, sign)

    def answer(self, limit: float = LIMIT) -> Any:
        """What the function returned, or Failed with the end of its standard error."""
        try:
            output, _ = self._process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self._function} took more than {limit:.0f} s") from None
        if self._process.returncode != 0 or not output.strip():
            raise Failed(f"{self._function} failed:\n{self.last_words()}")
        return json.loads(output)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def last_words(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-LAST_WORDS:]


def call(function: str, *, limit: float = LIMIT, **arguments: Any) -> Any:
    """One function in one fresh process."""
    return together(1, function, limit=limit, **arguments)[0]


def together(count: int, function: str, *, limit: float = LIMIT, **arguments: Any) -> list[Any]:
    """The same function in `count` processes, let go at the same moment."""
    with contextlib.ExitStack() as stack:
        family = [stack.enter_context(Child(function, arguments)) for _ in range(count)]
        for child in family:
            child.wait_until_ready()
        for child in family:
            child.go()
        return [child.answer(limit) for child in family]


@contextlib.contextmanager
def beside(function: str, **arguments: Any) -> Iterator[Child]:
    """A process that runs while the caller does something else; ended with the block."""
    with Child(function, arguments) as child:
        child.wait_until_ready()
        child.go()
        yield child


def load(function: str) -> Callable[..., Any]:
    module, _, name = function.partition(":")
    target: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return target


def main(function: str, arguments: str) -> None:
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    target = load(function)
    print(READY, file=channel, flush=True)
    if not sys.stdin.readline():
        return  # the parent has gone
    answer = target(**json.loads(arguments))
    print(json.dumps(answer), file=channel, flush=True)
    os._exit(0)  # some peers leave threads that never end


if __name__ == "__main__":
    main(*sys.argv[1:])
