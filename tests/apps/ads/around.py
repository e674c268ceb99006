"""What stands around orchestrators: a site, proxies, workers and a writer, each a process of its own.

    with around(folder) as world:
        async with house(database_url, world) as found: ...

One world serves many houses, one after the other: a house that is at rest has left nothing behind.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from retoma import Retoma, db
from retoma.apps.ads import APP, store
from retoma.apps.ads.model import MediaType, NewMission
from retoma.apps.ads.sandbox import Library, Wanted
from retoma.db import Database, Transaction, adhoc, moment, verbatim
from retoma.db.rows import read_json
from retoma.engine.query import RunnerSeen
from retoma.outbound import Outbound
from retoma.secret import Secret
from retoma.toolkit.tools import Tools
from tests import nursery
from tests.apps.ads import timelines
from tests.apps.ads.run_orchestrator import DREAMS
from tests.apps.ads.test_sandbox import as_row
from tests.apps.ads.timelines import Line
from tests.chaos.world import HOP, LOOK, somebody_writes
from tests.clock import TestClock
from tests.engine.aids import eventually
from tests.programs import logbooks
from tests.programs.processes import API_KEY, KEYED, PATIENCE, Program, Programs, programs

SEED = 7
WHO = "ana"
LAYOUTS = (("gallery", ()), ("archive", ("--no-keys",)))
PROXIES = ("red", "blue", "green")
LANGUAGES = ("pt", "en", "es", "fr")
TABLE = """CREATE TABLE ads (id text PRIMARY KEY, title text, advertiser text, text text,
           language text, media_type text, url text, qtd_ads integer, date text)"""
COLUMNS = (
    *("id", "title", "advertiser", "text", "language", "media_type", "url", "qtd_ads"),
    "date",
)
LEAVES = 30.0  # seconds for an orchestrator that was told to
LIBRARY = Library(SEED)

Asked = tuple[date, date, Sequence[str]]  # a mission: from, to, in these languages
Rows = dict[str, tuple[Any, ...]]  # of the table of ads, by id


@dataclass(frozen=True, slots=True)
class Around:
    """What stands around the orchestrators."""

    programs: Programs
    folder: Path
    site: Program
    workers: tuple[Program, ...]
    proxies: tuple[Program, ...]
    writer: Program
    target: Database

    @property
    def logs(self) -> list[Path]:
        return [self.folder / layout / "worker.jsonl" for layout, _ in LAYOUTS]

    def misbehave(self, worker: Program, **told: Any) -> None:
        url = f"{worker.origin}/misbehave"
        httpx2.post(
            url, json=told, headers=KEYED, timeout=60, trust_env=False
        ).raise_for_status()

    def trouble(self, **told: Any) -> None:
        """With the site, until `peace`."""
        url = f"{self.site.origin}/_sandbox/faults"
        httpx2.post(url, json=told, timeout=60, trust_env=False).raise_for_status()

    def peace(self) -> None:
        url = f"{self.site.origin}/_sandbox/faults"
        httpx2.request("DELETE", url, trust_env=False).raise_for_status()
        for each in self.workers:
            self.misbehave(each, times=0)

    async def stored(self) -> Rows:
        columns = ", ".join(COLUMNS)
        found = await self.target.read(
            lambda tx: tx.for_caller(verbatim(f"SELECT {columns} FROM ads"))  # noqa: S608
        )
        return {row[0]: tuple(row) for row in found[0]}


@contextmanager
def around(folder: Path) -> Iterator[Around]:
    address = f"sqlite:///{folder / 'target.db'}"
    target = db.open(address)
    target.write_now(lambda tx: tx.for_caller(verbatim(TABLE)), verb="test")
    with contextlib.closing(target), programs(folder) as those:
        own = ("--database", f"sqlite:///{folder / 'writer.db'}")
        # Its port is wanted before its profile is there, and it may start without one.
        writer = those.begin("writer-service", *own, TARGET=address)
        site = those.begin("sandbox", "ads", "--seed", str(SEED))
        proxies = tuple(those.proxy(name, WHO, "secret") for name in PROXIES)
        site.wait()
        workers = tuple(
            those.begin(
                *("worker-service", "--site", site.origin, "--adapter", layout),
                *("--data", str(folder / layout), "--watch", "0.2", "--misbehave", *more),
            )
            for layout, more in LAYOUTS
        )
        for each in (*proxies, *workers, writer):
            each.wait()
        sources = [word for each in workers for word in ("--source", each.origin)]
        profile = ("writer", "profiles", "add", "ads", "--target", "env:TARGET", *sources)
        nursery.run(
            [sys.executable, "-m", "retoma", *profile, *own],
            env={**os.environ, "RETOMA_PRIVATE_HOSTS": "127.0.0.1", "TARGET": address},
            check=True,
            capture_output=True,
        )
        yield Around(those, folder, site, workers, proxies, writer, target)


@dataclass(slots=True)
class House:
    """The orchestrators' database, as a person sees it; and the orchestrators."""

    app: Retoma
    world: Around
    folder: Path
    database: Database
    before: int  # lines of the services' logs from before it
    expected: Rows = field(default_factory=dict)
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    # — orchestrators —

    def orchestrate(self, name: str, crash: str = "") -> "subprocess.Popen[bytes]":
        """One more, or one again; `crash`: where it is to die, as `run_orchestrator` says it."""
        log = self.folder / f"{name}.log"
        with log.open("ab") as out:
            self.running[name] = nursery.Born(
                [
                    *(sys.executable, "-m", "tests.apps.ads.run_orchestrator"),
                    *(self.app.url, str(self.folder / "key"), name, crash),
                ],
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        return self.running[name]

    def kill(self, name: str) -> None:
        each = self.running.pop(name)
        each.kill()
        each.wait()

    def leave(self, name: str) -> int:
        """SIGTERM; its exit status."""
        each = self.running.pop(name)
        each.terminate()
        return each.wait(LEAVES)

    async def freeze(self, name: str) -> None:
        """SIGSTOP, but not in the middle of a transaction: its locks would stop all."""

        async def stopped_outside() -> bool:
            self.running[name].send_signal(signal.SIGSTOP)
            await asyncio.sleep(LOOK)  # what the others are at ends meanwhile
            if not await asyncio.to_thread(somebody_writes, self.app.url):
                return True
            self.running[name].send_signal(signal.SIGCONT)
            return False

        await eventually(stopped_outside, within=PATIENCE)

    def wake(self, name: str) -> None:
        self.running[name].send_signal(signal.SIGCONT)

    async def dreams(self, name: str) -> None:
        """Until it has come to where it was told to stay."""

        async def said() -> bool:
            return DREAMS in (self.folder / f"{name}.log").read_text()

        await eventually(said, within=PATIENCE)

    def end_dream(self, name: str) -> None:
        self.wake(name)
        self.running[name].send_signal(signal.SIGUSR1)

    async def travel(self, clock: TestClock, name: str, hops: int) -> None:
        """Two hops are more than a lease: this one beats in between and lives on."""
        for _ in range(hops):
            landed = moment((await self.rows("SELECT (SELECT clock())"))[0][0])
            assert landed is not None
            landed += timedelta(seconds=HOP)
            clock.jump(HOP)
            await eventually(lambda at=landed: self._has_beaten(name, at), within=PATIENCE)  # type: ignore[misc]

    async def _has_beaten(self, name: str, since: datetime) -> bool:
        def ring(tx: Transaction) -> None:
            tx.one(adhoc("SELECT (SELECT clock())"))
            tx.ring("look")  # a pulse that waits by the old time looks at the new one

        await self.database.write(ring, verb="ring")
        return any(each.name == name and each.beat_at >= since for each in await self.living())

    async def booted(self, name: str, beside: str = "") -> RunnerSeen:
        """Its life, or the one after that of `beside`."""

        async def lives() -> RunnerSeen | None:
            found = [each for each in await self.living() if each.name == name]
            return next((each for each in found if each.boot != beside), None)

        seen = await eventually(lives, within=PATIENCE)
        assert seen is not None
        return seen

    async def living(self) -> list[RunnerSeen]:
        return [each for each in await self.app.runners.list() if each.living]

    async def died(self, name: str) -> int:
        """How, once it has."""

        async def over() -> bool:
            return self.running[name].poll() is not None

        await eventually(over, within=PATIENCE)
        return int(self.running.pop(name).returncode)

    # — missions —

    async def add(self, *missions: Asked) -> list[str]:
        """Queued, the orchestrator started; what they will find joins what is expected."""
        wanted = [
            NewMission(first, last, MediaType.ALL, tuple(languages))
            for first, last, languages in missions
        ]
        ids = await self.app.write(lambda tx: store.add_missions(tx, wanted, actor=WHO))
        await self.app.write(lambda tx: store.queue_missions(tx, ids, actor=WHO))
        await self.app.write(lambda tx: store.start(tx, actor=WHO))
        for first, last, languages in missions:
            self.expected |= ads_of(first, last, languages)
        return ids

    async def cancel(self, mission: str) -> None:
        await self.app.write(lambda tx: store.cancel_mission(tx, mission, actor=WHO))

    async def rows(self, sql: str, **params: Any) -> list[Any]:
        return await self.database.read(lambda tx: tx.all(adhoc(sql), **params))

    async def mission(self, mission: str) -> Mapping[str, Any]:
        names = (
            *("status", "checkpoint", "error_code", "retry_count"),
            *("worker_job_id", "writer_job_id"),
        )
        [row] = await self.rows(
            f"SELECT {', '.join(names)} FROM missions WHERE id = :id",  # noqa: S608
            id=mission,
        )
        return dict(zip(names, row, strict=True))

    async def until(self, mission: str, sql: str) -> None:
        """Something that can be asked of its row."""

        async def so() -> bool:
            found = await self.rows(
                f"SELECT 1 FROM missions WHERE id = :id AND {sql}",  # noqa: S608
                id=mission,
            )
            return bool(found)

        await eventually(so, within=3 * PATIENCE)

    async def statuses(self) -> list[str]:
        return [each for (each,) in await self.rows("SELECT status FROM missions ORDER BY id")]

    # — rest, and the verdict —

    async def at_rest(self) -> bool:
        """Every mission has ended, and every session; nothing is held."""
        ended = {"completed", "failed", "canceled"}
        open_ = await self.rows("SELECT count(*) FROM ads_sessions WHERE ended_at IS NULL")
        at_rest = set(await self.statuses()) <= ended and open_[0][0] == 0
        return at_rest and not await self.held() and not await self.under_way()

    async def held(self) -> list[Any]:
        """What somebody holds; a proxy is let go of just after its session was seen to end."""
        return await self.rows(
            "SELECT i.name FROM pool_items i JOIN jobs j ON j.id = i.job"
            " WHERE i.scope = 'release' OR j.state IN ('waiting', 'running', 'parked')"
        )

    async def under_way(self) -> list[Any]:
        return await self.rows(
            "SELECT id FROM jobs WHERE kind IN ('ads.session', 'ads.extraction', 'ads.storage')"
            " AND state IN ('waiting', 'running')"
        )

    async def until_rest(self) -> None:
        await eventually(self.at_rest, within=3 * PATIENCE)

    async def problems(self) -> list[str]:
        """M1, M3 to M11, by the logs of the services and by the timelines; once all is at rest."""
        logs = self.world.logs
        told = await self.timelines()
        found = [*logbooks.doubled(logs), *(f"left: {each}" for each in logbooks.left(logs))]
        found += logbooks.overworked(logs, limit=5)
        found += timelines.impossible(told)
        found += timelines.overspent(told, session=2, scrape=2, writer=1)
        found += timelines.miscounted(told)
        found += [f"held: {each}" for (each,) in await self.held()]
        if self.expected.items() - (await self.world.stored()).items():
            found.append("rows are missing, or not as an undisturbed run leaves them")
        return found

    async def unrotated(self) -> list[str]:
        """M8, of a house in which nobody was killed."""
        active = await self.rows("SELECT name FROM proxies WHERE active = TRUE")
        names = [name for (name,) in active]
        return logbooks.unrotated(self.world.logs, names, self.before)

    async def timelines(self) -> dict[str, list[Line]]:
        told: dict[str, list[Line]] = {}
        for mission, event, details in await self.rows(
            "SELECT mission_id, event, details FROM mission_logs WHERE mission_id IS NOT NULL"
            " ORDER BY timestamp, id"
        ):
            told.setdefault(mission, []).append((event, read_json(details)))
        return told


def ads_of(first: date, last: date, languages: Sequence[str]) -> Rows:
    wanted = Wanted(start=first, end=last, languages=frozenset(languages))
    rows = (as_row(ad) for ad in LIBRARY.find(wanted))
    return {row["id"]: tuple(row[name] for name in COLUMNS) for row in rows}


def days(n: int, month: int = 3) -> list[Asked]:
    """So many missions, each for a day and a language of its own."""
    found: list[Asked] = []
    for each in range(n):
        day = date(2025, month, 1 + each // len(LANGUAGES))
        found.append((day, day, (LANGUAGES[each % len(LANGUAGES)],)))
    return found


@asynccontextmanager
async def house(url: str, world: Around, folder: Path) -> AsyncIterator[House]:
    """With all of the world in it, and every orchestrator gone at its end."""
    out = Outbound(private=frozenset({"127.0.0.1"}))
    async with Retoma(url) as app, out:
        tools = Tools(app, out, key_file=folder / "key")
        app.install(APP, tools)
        for knob in ("polling_session", "polling_job"):
            await app.knobs.set(f"ads.{knob}", 0.2)
        await introduce(app, world, store.Secrets(await (await tools.vault()).sealer(), WHO))
        before = len(logbooks.lines(world.logs))
        found = House(app, world, folder, await app.database(), before)
        try:
            yield found
        finally:
            for name in list(found.running):
                found.wake(name)
                found.kill(name)


async def introduce(app: Retoma, world: Around, secrets: store.Secrets) -> None:
    key = Secret(API_KEY)

    def add(tx: Any) -> None:
        for each in world.workers:
            at = {"url": each.origin, "storage_domain": each.server}
            store.add_worker(tx, secrets, name=each.server, api_key=key, **at)
        for each in world.proxies:
            host, _, port = each.server.partition(":")
            login = {"username": WHO, "password": Secret("secret")}
            store.add_proxy(tx, secrets, host=host, port=int(port), **login)  # type: ignore[arg-type]
        store.add_writer(tx, secrets, name="w", url=world.writer.origin, api_key=key)

    await app.write(add)


async def settle(seconds: float) -> None:
    """For chaos, which has no fact to wait for."""
    await asyncio.sleep(seconds)
