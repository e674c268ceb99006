"""The ads orchestrator by itself: missions whose workers and writer answer at once, in this very process.

What is left is our own time: claims, steps, polls of a millisecond, sessions begun and ended, the log.
"""

import asyncio
import json
import resource
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx2

from bench.child import call
from bench.compare import Figures, Measure
from bench.memory import told
from bench.ours import Address
from bench.places import Places

HERE = "bench.ads_missions"
LIMIT = 900.0  # seconds
AT_ONCE = 0.001  # seconds between two polls: as short as a knob may be
SOON = 0.5
SLOTS = 500
ADS = 1500  # of a mission, as its worker says


def overhead(address: Address, workers: int, missions: int) -> Measure:
    """Milliseconds of our own for a mission: of the processor, and by the clock.

    Its work is asked after at once. Its session is not: one that is looked at a thousand times a second
    would be measured in the place of the missions.
    """

    def measure(places: Places) -> Figures:
        made = _called(places, address, workers=workers, missions=missions, poll=AT_ONCE)
        each = 1000 / missions
        return made["cpu"] * each, made["seconds"] * each

    return measure


def fleet(address: Address, workers: int, missions: int) -> Measure:
    """Missions a second, and the memory of the one orchestrator that drives them all."""

    def measure(places: Places) -> Figures:
        made = _called(places, address, workers=workers, missions=missions, poll=SOON)
        return missions / made["seconds"], made["megabytes"]

    return measure


def _called(places: Places, address: Address, **how: float) -> dict[str, float]:
    url = address(places)
    key = places.file("key")
    made: dict[str, float] = call(f"{HERE}:orchestrate", limit=LIMIT, url=url, key=key, **how)
    return made


# — in a process of its own —


@dataclass(slots=True)
class Instant:
    """Workers and a writer behind one transport: whatever is asked for is there."""

    open: set[str] = field(default_factory=set)  # ports of workers with a session
    scrapes: int = 0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        port = str(request.url.port)
        match request.method, request.url.path.strip("/").split("/"):
            case "POST", ["session"]:
                self.open.add(port)
                return _says({})
            case "DELETE", ["session"]:
                self.open.discard(port)
                return _says({})
            case "GET", ["session", "status"]:
                return _says({"status": "ready" if port in self.open else "terminated"})
            case "POST", ["scrape"]:
                self.scrapes += 1
                return _says({"job_id": f"scrape_{self.scrapes}"})
            case "GET", ["scrape", job]:
                return _says({"job_id": job, "status": "completed", "ads_count": ADS})
            case "POST", ["process"]:
                return _says({"job_id": json.loads(request.content)["job_id"]})
            case "GET", ["status", job]:
                counts = {"total": ADS, "processed": ADS, "success_count": ADS}
                progress = {**counts, "failed_count": 0}
                return _says({"job_id": job, "status": "completed", "progress": progress})
            case _:
                return httpx2.Response(404)


def _says(told: dict[str, Any]) -> httpx2.Response:
    return httpx2.Response(200, json=told)


def orchestrate(
    url: str, key: str, workers: int, missions: int, poll: float
) -> dict[str, float]:
    return asyncio.run(_orchestrate(url, Path(key), workers, missions, poll))


async def _orchestrate(
    url: str, key: Path, workers: int, missions: int, poll: float
) -> dict[str, float]:
    from retoma import Retoma
    from retoma.apps.ads import APP, store
    from retoma.apps.ads.model import MediaType, NewMission
    from retoma.outbound import Outbound
    from retoma.secret import Secret
    from retoma.toolkit.tools import Tools

    services = Instant()
    out = Outbound(transport=httpx2.MockTransport(services), private=frozenset({"127.0.0.1"}))
    async with Retoma(url) as app, out:
        tools = Tools(app, out, key_file=key)
        app.install(APP, tools)
        await app.knobs.set("ads.polling_session", SOON)
        await app.knobs.set("ads.polling_job", poll)
        secrets = store.Secrets(await (await tools.vault()).sealer(), "bench")
        day = date(2025, 1, 15)
        wanted = [NewMission(day, day, MediaType.ALL, ("pt",))] * missions

        def begin(tx: Any) -> None:
            for n in range(workers):
                at = {"url": f"http://127.0.0.1:{2000 + n}", "api_key": Secret("k" * 40)}
                store.add_worker(tx, secrets, name=f"W{n}", storage_domain="127.0.0.1", **at)  # type: ignore[arg-type]
                store.add_proxy(tx, secrets, host="proxy.example.com", port=3000 + n)
            store.add_proxy(tx, secrets, host="spare.example.com")
            writer = {"url": "http://127.0.0.1:1999", "api_key": Secret("k" * 40)}
            store.add_writer(tx, secrets, name="w", **writer)  # type: ignore[arg-type]
            ids = store.add_missions(tx, wanted, actor="bench")
            store.queue_missions(tx, ids, actor="bench")
            store.start(tx, actor="bench")

        await app.write(begin)
        began, cpu = perf_counter(), _cpu()
        run = asyncio.create_task(app.run(slots=SLOTS, tick=0.25))
        await _until_done(app, missions)
        took, used = perf_counter() - began, _cpu() - cpu
        app.stop()
        await run
    return {"seconds": took, "cpu": used, "megabytes": told("VmHWM")}


async def _until_done(app: Any, missions: int) -> None:
    from retoma.db import adhoc

    done = adhoc("SELECT count(*) FROM ads_missions WHERE status = 'completed'")
    database = await app.database()
    while True:
        row = await database.read(lambda tx: tx.one(done))
        if row[0] == missions:
            return
        await asyncio.sleep(0.05)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
