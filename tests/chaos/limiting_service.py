"""A service that allows so many calls a second, as a program: `python -m tests.chaos.limiting_service '{…}'`.

Its limits change at given seconds after the first call. It answers 429 and Retry-After to whatever is one call too many, and
its log has a line for each call.
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.engine.rules.test_adaptive_rate import Service

LATENCY = 0.1  # seconds


class Door:
    """Lets in what the limit allows, and writes down whom."""

    def __init__(self, log: str, limits: list[tuple[float, float]]) -> None:
        self._service = Service([(until, limit) for until, limit in limits])
        self._lock = threading.Lock()
        self._file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._began: float | None = None

    def lets_in(self, pid: int) -> bool:
        with self._lock:
            now = time.monotonic()
            self._began = now if self._began is None else self._began
            took = self._service.takes(now - self._began)
            line = {"at": now - self._began, "took": took, "pid": pid}
            os.write(self._file, (json.dumps(line) + "\n").encode())
            return took


class Handler(BaseHTTPRequestHandler):
    """POST, with who asks."""

    door: Door

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["content-length"])))
        took = self.door.lets_in(told["pid"])
        if took:
            time.sleep(LATENCY)  # noqa: TID251 — it works
        self.send_response(200 if took else 429)
        if not took:
            self.send_header("retry-after", "1")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Its own log is enough."""


def main(told: dict[str, Any]) -> None:
    port_file = Path(told["port_file"])
    Handler.door = Door(told["log"], told["limits"])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    port_file.with_suffix(".new").write_text(str(server.server_address[1]))
    port_file.with_suffix(".new").rename(port_file)
    server.serve_forever()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
