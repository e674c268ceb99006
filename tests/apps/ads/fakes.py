"""A worker and a writer that do what the test says, each with a log of its own of what it was told."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.outbound.fakes import Asked, answer

KEY = "CANARY-" + "w" * 40


def told(status: int, body: Any, **headers: str) -> bytes:
    return answer(status, json.dumps(body).encode(), content_type="application/json", **headers)


@dataclass
class FakeWorker:
    """Speaks §9.1. `session` and `scrape` say what it answers next; the last one stays."""

    session: list[str] = field(default_factory=lambda: ["connecting", "ready"])
    scrape: list[Any] = field(default_factory=lambda: ["running", "completed"])
    ads: int = 1500
    keys: bool = True
    log: list[tuple[str, Any]] = field(default_factory=list)
    open: bool = False
    live: str | None = None
    jobs: dict[str, str] = field(default_factory=dict)  # by key
    refuse: Callable[[Asked], bytes | None] = lambda _: None
    over: set[str | None] = field(default_factory=set)  # scrapes that ended with their session
    _turn: int = 0
    _poll: int = 0

    def __call__(self, asked: Asked) -> bytes:
        refused = self.refuse(asked)
        if refused is not None:
            return refused
        if asked.headers.get("x-api-key") != KEY:
            return told(401, {"error": "x-api-key"})
        at = urlsplit(asked.target)
        match asked.method, at.path.strip("/").split("/"):
            case "POST", ["session"]:
                self.log.append(("session", json.loads(asked.body)))
                self.open, self._turn, self.live = True, 0, None
                return told(200, {})
            case "DELETE", ["session"]:
                self.log.append(("delete", None))
                self.open = False
                self.over, self.live = self.over | {self.live}, None
                return told(200, {})
            case "GET", ["session", "status"]:
                return told(200, {"status": self._session()})
            case "POST", ["scrape"]:
                return self._begin(asked)
            case "GET", ["scrape"]:
                return self._find(parse_qs(at.query)["key"][0])
            case "GET", ["scrape", job]:
                return self._status(job)
            case "POST", ["scrape", job, "cancel"]:
                self.log.append(("cancel", job))
                self.over, self.live = self.over | {job}, None
                return told(200, {})
            case _:
                return told(404, {})

    def _session(self) -> str:
        if not self.open:
            return "terminated"
        if self.live is not None:
            return "scraping"
        status = self.session[min(self._turn, len(self.session) - 1)]
        self._turn += 1
        return status

    def _begin(self, asked: Asked) -> bytes:
        if self.live is not None:
            return told(409, {"error": "busy"})
        job = f"scrape_{len(self.log):08x}"
        self.log.append(("scrape", json.loads(asked.body)))
        self.jobs[asked.headers.get("idempotency-key", "")] = job
        self.live, self._poll = job, 0
        return told(200, {"job_id": job})

    def _find(self, key: str) -> bytes:
        if not self.keys:
            return told(405, {})
        if key not in self.jobs:
            return told(404, {}, retoma_keys="known")
        return told(200, {"job_id": self.jobs[key]})

    def _status(self, job: str) -> bytes:
        if job not in self.jobs.values():
            return told(404, {})
        if job in self.over:
            return told(200, {"status": "cancelled"})
        says = self.scrape[min(self._poll, len(self.scrape) - 1)]
        self._poll += 1
        body = says if isinstance(says, dict) else {"status": says, "ads_count": self.ads}
        if body.get("status") not in ("pending", "queued", "running"):
            self.live = None
        return told(200, body)


@dataclass
class FakeWriter:
    """Speaks §9.2."""

    statuses: list[str] = field(default_factory=lambda: ["processing", "completed"])
    total: int = 1500
    failed: int = 13
    healthy: bool = True
    log: list[tuple[str, Any]] = field(default_factory=list)
    jobs: dict[str, int] = field(default_factory=dict)  # how often each was asked after
    refuse: Callable[[Asked], bytes | None] = lambda _: None

    def __call__(self, asked: Asked) -> bytes:
        refused = self.refuse(asked)
        if refused is not None:
            return refused
        match asked.method, urlsplit(asked.target).path.strip("/").split("/"):
            case "GET", ["health"]:
                return told(200 if self.healthy else 503, {"status": "healthy"})
            case "POST", ["process"]:
                body = json.loads(asked.body)
                self.log.append(("process", body))
                self.jobs.setdefault(body["job_id"], 0)
                return told(200, {"job_id": body["job_id"], "status": "processing"})
            case "GET", ["status", job] if job in self.jobs:
                return told(200, self._status(job))
            case _:
                return told(404, {})

    def _status(self, job: str) -> dict[str, Any]:
        turn = self.jobs[job]
        self.jobs[job] += 1
        status = self.statuses[min(turn, len(self.statuses) - 1)]
        done = self.total if status != "processing" else self.total // 2
        return {
            "job_id": job,
            "status": status,
            "progress": {
                "total": self.total,
                "processed": done,
                "success_count": self.total - self.failed,
                "failed_count": self.failed,
            },
        }
