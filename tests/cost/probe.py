"""Ask a server for a page again and again, as one person, from a process of its own:
`python -m tests.cost.probe PID ORIGIN PATH HEADERS` writes what each answer took once its input ends.

The machine may have other work: for how long a process was ready and had no processor, the kernel counts
(`schedstat`). An answer is charged without it.
"""

import json
import socket
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

PAUSE = 0.02  # seconds between two questions
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question took."""

    at: float
    took: float
    waited: float  # for a processor: the loop of the server, and who asked
    status: int  # 0: there was none

    @property
    def charged(self) -> float:
        return self.took - self.waited


def waited(pid: int | str) -> float:
    """Seconds that the first thread of a process was ready and did not run."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9


class Page:
    """One page, over a connection that is kept."""

    def __init__(self, origin: str, path: str, headers: dict[str, str]) -> None:
        host, port = origin.removeprefix("http://").split(":")
        self._where = (host, int(port))
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}:{port}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._asked = "\r\n".join([*lines, "", ""]).encode()
        self._socket: socket.socket | None = None

    def ask(self) -> int:
        for _ in range(2):  # a connection that rested may have been closed
            try:
                return self._answer()
            except OSError:
                self._close()
        return 0

    def _answer(self) -> int:
        if self._socket is None:
            self._socket = socket.create_connection(self._where, PATIENCE)
        self._socket.sendall(self._asked)
        read = b""
        while b"\r\n\r\n" not in read:
            read += self._received()
        head, _, body = read.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        [length] = [int(each[15:]) for each in lines if each.startswith(b"content-length:")]
        while len(body) < length:
            body += self._received()
        return int(lines[0].split()[1])

    def _received(self) -> bytes:
        assert self._socket is not None
        read = self._socket.recv(1 << 16)
        if not read:
            raise ConnectionError
        return read

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def asked(page: Page, pid: int, stop: threading.Event) -> list[Answer]:
    told = []
    while not stop.wait(PAUSE):
        before, began = waited(pid) + waited("self"), time.monotonic()
        status = page.ask()
        took = time.monotonic() - began
        told.append(Answer(began, took, waited(pid) + waited("self") - before, status))
    return told


if __name__ == "__main__":
    server, origin, path, headers = sys.argv[1:]
    stop = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=wait, daemon=True).start()
    print("asks", flush=True)
    found = asked(Page(origin, path, json.loads(headers)), int(server), stop)
    print(json.dumps([asdict(each) for each in found]))
