"""`python -m tests.apps.ads.letter_worker PORT LOG KEY SECONDS HANGUPS`: a worker to the letter of §9.1.

It knows the six routes of the document and nothing besides: no key, no list. Each scrape takes so many
SECONDS, whatever becomes of its session meanwhile: only its cancel, its end or a kill ends it. HANGUPS
says of its first scrapes what becomes of the answer: `a` it is given, `b` the connection is closed and
the scrape has begun, `c` it is closed and nothing has. LOG has the lines that `logbooks` reads.
"""

import asyncio
import json
import os
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.apps.ads.fakes import told
from tests.lines import whole_lines
from tests.outbound.fakes import Asked, Server

ADS = 3
MANY = ("began", "ended")


@dataclass
class LetterWorker:
    """One session at a time; scrapes that outlive it."""

    log: Path
    key: str
    seconds: float
    hangups: str
    session: str | None = None
    scraping: dict[str, dict[str, Any]] = field(default_factory=dict)  # live, by id
    ended: dict[str, str] = field(default_factory=dict)  # by id, how
    begun: int = 0

    def __post_init__(self) -> None:
        """What a killed one was at has ended with it."""
        live: dict[str, dict[str, Any]] = {}
        for line in self._lines():
            name = line.get("job_id") or line["session"]
            if line["event"].endswith("began"):
                live[name] = line
            else:
                live.pop(name, None)
            self.begun += line["event"] == "scrape.began"
        for line in live.values():
            self._tell(line["event"].replace("began", "ended"), **_inside(line))

    def _lines(self) -> list[dict[str, Any]]:
        return [json.loads(text) for text in whole_lines(self.log)] if self.log.exists() else []

    def _tell(self, event: str, **more: Any) -> None:
        at = datetime.now(UTC).isoformat()  # noqa: TID251 — its own clock, as a stranger's
        with self.log.open("a") as log:
            log.write(json.dumps({"at": at, "event": event, **more}) + "\n")

    def __call__(self, asked: Asked) -> Any:
        if asked.headers.get("x-api-key") != self.key:
            return told(401, {})
        match asked.method, asked.target.strip("/").split("/"):
            case "POST", ["session"]:
                self._end_session()
                self.session = f"s-{os.getpid()}-{time.monotonic_ns()}"
                proxy = json.loads(asked.body)["proxy"]["server"]
                self._tell("session.began", session=self.session, proxy=proxy)
                return told(200, {})
            case "DELETE", ["session"]:
                self._end_session()
                return told(200, {})
            case "GET", ["session", "status"]:
                return told(200, {"status": self._status()})
            case "POST", ["scrape"]:
                return self._scrape(asked)
            case "GET", ["scrape", job] if job in self.scraping or job in self.ended:
                status = "running" if job in self.scraping else self.ended[job]
                return told(200, {"status": status, "ads_count": ADS, "data": []})
            case "POST", ["scrape", job, "cancel"] if job in self.scraping:
                self._end(job, "cancelled")
                return told(200, {})
            case _:
                return told(404, {})

    def _status(self) -> str:
        if self.session is None:
            return "terminated"
        return "scraping" if self.scraping else "ready"

    def _end_session(self) -> None:
        if self.session is not None:
            self._tell("session.ended", session=self.session)
        self.session = None

    def _scrape(self, asked: Asked) -> Any:
        if self.session is None:
            return told(404, {})
        self.begun += 1
        what = self.hangups[self.begun - 1 : self.begun] or "a"
        if what == "c":
            return hang_up()
        job = f"scrape_{os.getpid():x}{self.begun:x}"
        line = {"session": self.session, "job_id": job}
        self.scraping[job] = {**line, "filters": json.loads(asked.body)["filters"]}
        self._tell("scrape.began", **self.scraping[job])
        asyncio.get_running_loop().call_later(self.seconds, self._end, job, "completed")
        return hang_up() if what == "b" else told(200, {"job_id": job})

    def _end(self, job: str, how: str) -> None:
        line = self.scraping.pop(job, None)
        if line is not None:
            self.ended[job] = how
            self._tell("scrape.ended", session=line["session"], job_id=job)


def _inside(line: dict[str, Any]) -> dict[str, Any]:
    return {name: line[name] for name in ("session", "job_id") if name in line}


async def hang_up() -> Any:
    """An answer without a byte; then the connection is closed."""
    nothing: bytes
    for nothing in ():
        yield nothing


async def main(port: str, log: str, key: str, seconds: str, hangups: str) -> None:
    server = Server(LetterWorker(Path(log), key, float(seconds), hangups))
    listening = await asyncio.start_server(server.serve, "127.0.0.1", int(port))
    print(listening.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
