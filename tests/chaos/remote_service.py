"""Somebody else's service, as a program with a log of its own: `python -m tests.chaos.remote_service '{…}'`.

It accepts and hangs up, answers late, loses jobs, goes backwards, doubles ids; what it did is in its
log, one line for each job that began or ended, written before anybody is answered.
"""

import json
import os
import random
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Work:
    """One job of the service."""

    id: str
    key: str
    polls: int
    status: str = "queued"

    @property
    def live(self) -> bool:
        return self.status in ("queued", "running")


@dataclass
class Service:
    """What it has, and how badly it behaves: shares of all requests."""

    log: Path
    seed: int = 0
    hang_up: float = 0.0  # accepts, and hangs up
    late: float = 0.0  # of requests answered after `delay` seconds
    delay: float = 0.05
    lose: float = 0.0  # forgets a job it had
    backwards: float = 0.0
    fail: float = 0.0
    double: float = 0.0  # answers with the id of another job
    by_key: bool = False  # what is sent again under its key is the same job
    endless: bool = False  # its jobs end only when they are stopped
    works: dict[str, Work] = field(default_factory=dict)
    numbers: Any = field(default_factory=count)
    lock: Any = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.file = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def accept(self, key: str) -> tuple[Work, bool]:
        with self.lock:
            for known in self.works.values() if self.by_key else ():
                if known.key == key:
                    return known, False
            polls = sys.maxsize if self.endless else self.rng.randint(1, 3)
            work = Work(f"w{next(self.numbers)}", key, polls)
            self.works[work.id] = work
            self.tell("accepted", work)
            return work, self.rng.random() < self.hang_up

    def told_id(self, work: Work) -> str:
        with self.lock:
            doubled = self.rng.random() < self.double
            return self.rng.choice(list(self.works)) if doubled else work.id

    def key_of(self, id_: str) -> str | None:
        with self.lock:
            return self.works[id_].key if id_ in self.works else None

    def look(self, id_: str) -> str:
        with self.lock:
            work = self.works.get(id_)
            if work is None or work.status == "lost":
                return "unheard of"
            if not work.live:
                return work.status
            if self.rng.random() < self.lose:
                return self.end(work, "lost") and "unheard of"
            work.polls -= 1
            if work.polls <= 0:
                failed = self.rng.random() < self.fail
                return self.end(work, "failed" if failed else "completed")
            back = self.rng.random() < self.backwards
            work.status = "queued" if back else "running"
            return work.status

    def stop(self, id_: str) -> None:
        with self.lock:
            work = self.works.get(id_)
            if work is not None and work.live:
                self.end(work, "canceled")

    def find(self, key: str) -> str | None:
        with self.lock:
            found = [work.id for work in self.works.values() if work.key == key]
            return found[-1] if found else None

    def end(self, work: Work, status: str) -> str:
        work.status = status
        self.tell("ended", work)
        return status

    def tell(self, event: str, work: Work) -> None:
        line = {"event": event, "key": work.key, "id": work.id, "status": work.status}
        os.write(self.file, (json.dumps(line) + "\n").encode())

    def dawdle(self) -> None:
        with self.lock:
            slow = self.rng.random() < self.late
        if slow:
            threading.Event().wait(self.delay)


class Handler(BaseHTTPRequestHandler):
    """POST /jobs, GET /jobs/<id>, GET /jobs?key=, DELETE /jobs/<id>."""

    service: Service
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.service.dawdle()
        work, hang_up = self.service.accept(body["key"])
        if hang_up:
            self.close_connection = True
            self.connection.close()
        else:
            self.answer(202, {"id": self.service.told_id(work)})

    def do_GET(self) -> None:
        self.service.dawdle()
        asked = urlsplit(self.path)
        if asked.query:
            self.answer(200, {"id": self.service.find(parse_qs(asked.query)["key"][0])})
        else:
            id_ = asked.path.rsplit("/", 1)[1]
            status = {"status": self.service.look(id_), "key": self.service.key_of(id_)}
            self.answer(200, status)

    def do_DELETE(self) -> None:
        self.service.stop(self.path.rsplit("/", 1)[1])
        self.answer(200, {})

    def answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Its own log is enough."""

    def finish(self) -> None:
        with suppress(OSError, ValueError):  # hung up, by us or by them
            super().finish()


def main(told: dict[str, Any]) -> None:
    port_file = Path(told.pop("port_file"))
    Handler.service = Service(**{**told, "log": Path(told["log"])})
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    port_file.with_suffix(".new").write_text(str(server.server_address[1]))
    port_file.with_suffix(".new").rename(port_file)
    server.serve_forever()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
