"""Somebody who is paid for each call, as a program: `python -m tests.chaos.paid_service '{…}'`.

Its log is the truth about money: one line for each call, appended before anybody is answered.
"""

import json
import os
import random
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

DEAREST = 5  # dollars of one call


class Till:
    """What it takes, and how many of its answers are worth nothing although they were paid."""

    def __init__(self, log: str, seed: int, bad: float) -> None:
        self._rng = random.Random(seed)
        self._bad = bad
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def pay(self, told: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            cents = self._rng.randint(1, DEAREST * 100)
            call = {"call": next(self._numbers), "price": f"{cents // 100}.{cents % 100:02d}"}
            os.write(self._file, (json.dumps({**told, **call}) + "\n").encode())
            return {**call, "good": self._rng.random() >= self._bad}


class Handler(BaseHTTPRequestHandler):
    """POST, with who asks."""

    till: Till

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["content-length"])))
        content = json.dumps(self.till.pay(told)).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Its own log is enough."""


def main(told: dict[str, Any]) -> None:
    port_file = Path(told["port_file"])
    Handler.till = Till(told["log"], told["seed"], told["bad"])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    port_file.with_suffix(".new").write_text(str(server.server_address[1]))
    port_file.with_suffix(".new").rename(port_file)
    server.serve_forever()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
