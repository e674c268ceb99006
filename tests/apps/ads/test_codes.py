"""Every code of the document, produced: one world in which each mission says what goes wrong with it."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from urllib.parse import urlsplit

import httpcore2

from retoma.apps.ads import store
from retoma.apps.ads.model import ERRORS, Event, MediaType, NewMission
from retoma.db.rows import read_json
from retoma.testing import drain
from tests.apps.ads.aids import WHO, World, world
from tests.apps.ads.fakes import FakeWorker, FakeWriter, told
from tests.engine.aids import eventually
from tests.outbound.fakes import Asked

# What a mission asks for, by its language; where it ends, with what code, and its last real cause.
ENDS = {
    "failed": ("failed", "ERROR203", "ERROR200"),
    "cancelled": ("failed", "ERROR203", "ERROR201"),
    "endless": ("failed", "ERROR203", "ERROR202"),
    "s400": ("running", "ERROR400", "ERROR400"),
    "s401": ("running", "ERROR401", "ERROR401"),
    "terminated": ("failed", "ERROR104", "ERROR100"),
    "stuck": ("failed", "ERROR104", "ERROR102"),
    "disconnected": ("failed", "ERROR104", "ERROR103"),
    "refused": ("failed", "ERROR500", "ERROR500"),
    "busy": ("completed", None, None),
    "empty": ("completed", None, None),
    "unwanted": ("canceled", None, None),
    "w300": ("failed", "ERROR304", "ERROR300"),
    "w301": ("completed", None, None),
    "w303": ("running", "ERROR303", "50 de 100"),
}
# Codes that only pass by: what made them is over before the mission ends.
PASSING = {"busy": "ERROR502", "w301": "ERROR301"}
SESSIONS = ("terminated", "stuck", "disconnected")
SCRAPES: dict[str, Any] = {
    "failed": {"status": "failed", "error": "no page"},
    "cancelled": {"status": "cancelled"},
    "empty": {"status": "empty"},
    "endless": {"status": "running", "ads_count": 1},
    "s400": {"status": "failed", "error_code": "ERROR400"},
    "s401": {"status": "failed", "error_code": "ERROR401"},
}
# §10.1, in its order, and what we tell besides.
DETAILS = {
    "mission_queued": "queued_by",
    "mission_assigned": "worker_id worker_name proxy_name + mission_id",
    "mission_canceled": "canceled_by previous_checkpoint",
    "session_started": "worker_id proxy_id proxy_name",
    "session_ready": "worker_id duration_ms",
    "session_failed": "worker_id error_code proxy_name",
    "session_terminated": "worker_id reason",
    "scrape_started": "worker_job_id mission_config + mission_id",
    "scrape_progress": "worker_job_id ads_count progress_pct",
    "scrape_completed": "worker_job_id ads_count duration_ms",
    "scrape_failed": "worker_job_id error_code error_message + worker_id",
    "scrape_empty": "worker_job_id",
    "writer_started": "writer_job_id data_url",
    "writer_progress": "writer_job_id processed total",
    "writer_completed": "writer_job_id success_count failed_count duration_ms",
    "writer_failed": "writer_job_id error + error_code error_message",
    "mission_completed": "total_duration_ms ads_count success_count + failed_count",
    "mission_failed": "error_code error_message retry_count",
    "retry_triggered": "attempt error_code phase",
    "proxy_rotated": "old_proxy new_proxy reason + proxy_name",
}


@dataclass
class Scripted(FakeWorker):
    """Does what the language of a scrape says; the first session of the first one never gets ready."""

    slow: bool = False
    busy: bool = True
    stopped: set[str] = field(default_factory=set)

    def _session(self) -> str:
        if self.slow:
            return "warming_up"
        script = _script(self.live)
        return script if script in SESSIONS else super()._session()

    def __call__(self, asked: Asked) -> bytes:
        if asked.method == "DELETE":
            self.slow = False
        if asked.target.endswith("/cancel"):
            self.stopped.add(asked.target.split("/")[2])
        return super().__call__(asked)

    def _begin(self, asked: Asked) -> bytes:
        [script] = json.loads(asked.body)["filters"]["languages"]
        if script == "refused":
            return told(400, {"detail": "no such filter"})
        if script == "busy" and self.busy:
            self.busy = False
            return told(503, {})
        super()._begin(asked)
        key = asked.headers["idempotency-key"]
        self.live = self.jobs[key] = f"{script}-{self.jobs[key]}"
        return told(200, {"job_id": self.live})

    def _status(self, job: str) -> bytes:
        self.scrape = [SCRAPES.get(_script(job) or "", "completed")]
        if _script(job) in SESSIONS:
            self.scrape = ["running"]
        if job in self.stopped:
            self.scrape = ["cancelled"]
        return super()._status(job)


@dataclass
class ScriptedWriter(FakeWriter):
    """Likewise, by the name of the file that it is to fetch."""

    total: int = 100
    away: Iterator[int] = field(default_factory=lambda: iter(range(1)))
    scripts: dict[str, str | None] = field(default_factory=dict)

    def __call__(self, asked: Asked) -> bytes:
        said = self._said(asked)
        return said.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)  # each call dials anew

    def _said(self, asked: Asked) -> bytes:
        if (asked.method, asked.target) == ("POST", "/process"):
            body = json.loads(asked.body)
            script = _script(urlsplit(body["source"]["url"]).path.strip("/"))
            self.scripts[body["job_id"]] = script
            if script == "w301" and next(self.away, None) is not None:
                return told(503, {})
        return super().__call__(asked)

    def _status(self, job: str) -> dict[str, Any]:
        script = self.scripts[job]
        self.statuses = ["processing", "failed" if script == "w300" else "partial"]
        self.failed = 50 if script == "w303" else 3
        return super()._status(job)


def _script(job: str | None) -> str | None:
    return None if job is None else job.partition("-")[0]


class Streets(httpcore2.AsyncNetworkBackend):
    """The usual ones; to one port no connection comes about in time for as long as that is said."""

    late_to: int | None = None

    async def connect_tcp(
        self, host: str, port: int, *how: Any, **more: Any
    ) -> httpcore2.AsyncNetworkStream:
        if port == self.late_to:
            raise httpcore2.ConnectTimeout
        return await httpcore2.AnyIOBackend().connect_tcp(host, port, *how, **more)


async def codes(house: World) -> list[tuple[str | None, str]]:
    rows = await house.rows("SELECT mission, details FROM ads_logs ORDER BY id")
    said = [(mission, read_json(details)) for mission, details in rows]
    return [(mission, told["error_code"]) for mission, told in said if "error_code" in told]


async def test_m4_every_code_of_the_document_comes_about_and_ends_as_its_row_says(
    database_url, tmp_path
):
    workers, writer = [Scripted(slow=True), Scripted(), Scripted()], ScriptedWriter()
    streets = Streets()
    async with world(
        database_url, tmp_path, workers=workers, writers=[writer], proxies=0, network=streets
    ) as house:
        knobs = {
            "timeout_job": 900,
            "polling_job": 100,
            "timeout_session": 250,
            "polling_session": 60,
            "max_retries": 1,
            "max_proxy_failures": 7,
        }
        for name, value in knobs.items():
            await house.app.knobs.set(f"ads.{name}", value, actor=WHO)
        missions = dict(zip(ENDS, await house.app.write(_added), strict=True))
        await house.queue(*missions.values())
        assert await house.cancel(missions["unwanted"]) == "canceled"
        await house.start()
        await drain(house.app, within=120)
        assert [code for _, code in await codes(house)] == ["ERROR501"] * 3, (
            "nothing else begins"
        )

        [(url,)] = await house.rows("SELECT url FROM writers")
        streets.late_to = urlsplit(url).port
        for n in range(1, 7):
            await house.new_proxy(n)
        working = asyncio.create_task(drain(house.app, within=120))
        await eventually(lambda: said(house, "ERROR302", 1))
        streets.late_to = None
        await working
        await drain(house.app, within=120)

        found = {script: await house.mission(mission) for script, mission in missions.items()}
        assert {
            script: (row["status"], row["error_code"], cause(row, ENDS[script][2]))
            for script, row in found.items()
        } == ENDS
        passed = await codes(house)
        for script, code in PASSING.items():
            assert (missions[script], code) in passed
        ended = {row["error_code"] for row in found.values()}
        assert {code for _, code in passed} | ended - {None} == set(ERRORS)
        assert await told_of(house) == {
            event: {*names.split()} - {"+"} for event, names in DETAILS.items()
        }
        assert set(DETAILS) == {str(event) for event in Event}
        assert await house.rows("SELECT off_after FROM pools WHERE name = 'ads.proxies'") == [
            (7,)
        ]


async def told_of(house: World) -> dict[str, set[str]]:
    """Which details each event has, all of its kind together."""
    found: dict[str, set[str]] = {}
    for event, details in await house.rows("SELECT event, details FROM ads_logs"):
        found.setdefault(event, set()).update(read_json(details))
    return found


def cause(row: dict[str, Any], wanted: str | None) -> str | None:
    """The last real cause is kept beside the code of a spent budget."""
    told_of = f"{row['error_code']} {row['error_message']}"
    return wanted if wanted is not None and wanted in told_of else row["error_message"]


def _added(tx: Any) -> list[str]:
    day = date(2025, 1, 15)
    wanted = [NewMission(day, day, MediaType.ALL, (script,)) for script in ENDS]
    return store.add_missions(tx, wanted, actor=WHO)


async def said(house: World, code: str, times: int) -> bool:
    return [each for _, each in await codes(house)].count(code) >= times
