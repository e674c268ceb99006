"""The ads of the demo: a site, proxies, workers and a writer, each a program of ours, and missions for them.

One of the proxies is given with a wrong password, and one of the workers fails its first scrapes. Where all
of it listens is written down, so that the next `retoma up` finds what this one has left.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

from retoma import db, settings
from retoma.apps.ads import APP, store
from retoma.apps.ads.model import MediaType
from retoma.bootstrap import build_tools
from retoma.cli.exits import Exit, Stop
from retoma.cli.processes import Listening, stop_all
from retoma.cli.world import ADS_KEY_FILE, PRIVATE
from retoma.db import verbatim
from retoma.library import Retoma
from retoma.manifest import Application
from retoma.outbound import Outbound
from retoma.sandbox.ads import Library, Wanted
from retoma.secret import Secret
from retoma.services.writer import Desk
from retoma.services.writer import Wanted as Profile
from retoma.settings import Settings
from retoma.vault import Vault
from retoma.words import say

WHO: Final = "demo"
COLOURS: Final = ("red", "blue", "green", "amber")
LAYOUTS: Final = ("gallery", "archive")
FAILS: Final = 2  # scrapes of the failing worker: no mission can meet so many of them in a row
POLL: Final = 0.5  # seconds: a person is watching
REST: Final = 10.0  # seconds for a program to leave
FIRST_DAY: Final = date(2025, 3, 1)
ONE_DAY: Final = timedelta(days=1)
LANGUAGES: Final = ("pt", "en")
TABLE: Final = verbatim(
    "CREATE TABLE IF NOT EXISTS ads (id text PRIMARY KEY, title text, advertiser text, text text,"
    " language text, media_type text, url text, qtd_ads integer, date text)"
)
STORED: Final = verbatim("SELECT id FROM ads")
MISSIONS: Final = verbatim(
    "SELECT date_start, status, ads_count, error_code, retry_count FROM missions"
)
TROUBLES: Final = verbatim("SELECT count(*) FROM ads_logs WHERE event = 'session_failed'")


@dataclass(frozen=True, slots=True)
class AdsSize:
    """How much of it there is."""

    workers: int
    proxies: int
    missions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdsAccount:
    """What became of the missions; `problems` is what should not have."""

    missions: int
    completed: int
    stored: int  # ads
    retried: int
    sessions_failed: int
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


class AdsWorld:
    """Around one house, in one folder of it."""

    def __init__(self, folder: Path, size: AdsSize, seed: int) -> None:
        self.size = size
        self.programs: dict[str, Listening] = {}
        self._folder = folder / "ads"
        self._key_file = folder / ADS_KEY_FILE
        self._seed = seed
        self._ports: dict[str, int] = {}
        self._key = ""

    @property
    def settings(self) -> Settings:
        return settings.read(secret_key_file=str(self._key_file))

    # — the programs —

    async def start(self, app: Retoma) -> None:
        """All of them listen when this returns, and the house knows them."""
        known = self._remembered(app)
        site = asyncio.ensure_future(
            self._begin("site", "sandbox", "ads", "--seed", self._seed)
        )
        async with asyncio.TaskGroup() as group:
            for name in COLOURS[: self.size.proxies]:
                group.create_task(self._begin(name, "sandbox", "proxy", name))
            own = f"sqlite:///{self._folder / 'writer.db'}"
            group.create_task(self._begin("writer", "writer-service", "--database", own))
            origin = (await site).origin
            for n in range(self.size.workers):
                group.create_task(self._begin_worker(n, origin))
        self._remember()
        await self._profile(own)
        if not known:
            await self._introduce(app)

    async def _begin_worker(self, n: int, site: str) -> None:
        name = self._worker(n)
        data = self._folder / name
        fails = 0 < n == self.size.workers - 1
        if fails and not data.exists():
            data.mkdir(mode=0o700)
            told = {"session": [], "scrape": ["fails"] * FAILS, "marked": {}}
            (data / "misbehave.json").write_text(json.dumps(told), encoding="utf-8")
        await self._begin(
            name,
            *("worker-service", "--site", site, "--adapter", LAYOUTS[n % len(LAYOUTS)]),
            *("--data", str(data), "--watch", "2", *(("--misbehave",) if fails else ())),
        )

    async def _begin(self, name: str, *words: Any) -> Listening:
        environment = {
            "RETOMA_API_KEY": self._key,
            "RETOMA_SANDBOX_PROXY": f"{WHO}:{self._key}",
            "RETOMA_SECRET_KEY_FILE": str(self._key_file),
            "RETOMA_APPLICATIONS": "",
            **PRIVATE,
        }
        try:
            self.programs[name] = await Listening.start(
                *(*map(str, words), "--port", str(self._ports.get(name, 0))),
                environment=environment,
                log_file=self._folder / f"{name}.log",
            )
        except RuntimeError:
            raise Stop(
                Exit.UNAVAILABLE,
                say(
                    "{name} of the ads world did not come up; its log is in {folder}",
                    name=name,
                    folder=self._folder,
                ),
            ) from None
        return self.programs[name]

    async def stop(self) -> None:
        await stop_all(list(self.programs.values()), REST)

    def kill(self) -> None:
        for each in self.programs.values():
            each.kill()

    # — what is kept for the next time —

    def _remembered(self, app: Retoma) -> bool:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        file = self._folder / "world.json"
        if not file.exists():
            self._key = app.ids.new() + app.ids.new()
            return False
        told = json.loads(file.read_text(encoding="utf-8"))
        self._key, self._ports = told["key"], told["ports"]
        return True

    def _remember(self) -> None:
        file = self._folder / "world.json"
        ports = {name: int(each.server.split(":")[1]) for name, each in self.programs.items()}
        file.touch(mode=0o600)
        file.write_text(json.dumps({"key": self._key, "ports": ports}), encoding="utf-8")

    @staticmethod
    def _worker(n: int) -> str:
        return f"worker-{n + 1}"

    # — what the house knows —

    async def _profile(self, own: str) -> None:
        """What the writer may be asked for: this table, from these workers."""
        target = db.open(self._target)
        await target.write(lambda tx: tx.for_caller(TABLE), verb="demo")
        target.close()
        retoma = Retoma(own)
        desk = Desk(
            retoma,
            lambda database: Vault(database, retoma.ids, key_file=self._key_file),
            Outbound(private=frozenset({"127.0.0.1"})),
        )
        wanted = Profile(
            name="ads",
            table="ads",
            schema="public",
            conflict_key="id",
            json_path="ads",
            origins=[
                each.origin for name, each in self.programs.items() if name.startswith("worker")
            ],
        )
        async with retoma:
            await desk.ready()
            await desk.add(wanted, Secret(self._target), {}, actor=WHO)
            await desk.close()

    @property
    def _target(self) -> str:
        return f"sqlite:///{self._folder / 'ads.db'}"

    async def _introduce(self, app: Retoma) -> None:
        tools = build_tools(app, self.settings)
        secrets = store.Secrets(await (await tools.vault()).sealer(), WHO)
        await tools.close()
        key = Secret(self._key)

        def add(tx: Any) -> None:
            for n in range(self.size.workers):
                each = self.programs[self._worker(n)]
                at = {"url": each.origin, "storage_domain": each.server}
                store.add_worker(tx, secrets, name=self._worker(n), api_key=key, **at)
            for place, name in enumerate(COLOURS[: self.size.proxies]):
                bad = place > 0 and place == self.size.proxies - 1
                host, _, port = self.programs[name].server.partition(":")
                store.add_proxy(
                    tx,
                    secrets,
                    host=host,
                    port=int(port),
                    name=f"{name} (wrong password)" if bad else name,
                    username=WHO,
                    password=Secret("wrong") if bad else key,
                )
            at_writer = self.programs["writer"].origin
            store.add_writer(tx, secrets, name="writer", url=at_writer, api_key=key)

        for knob in ("polling_session", "polling_job"):
            await app.knobs.set(f"ads.{knob}", POLL)
        await app.write(add)

    # — missions —

    async def begin(self, app: Retoma, n: int) -> None:
        """So many more, each for the day after the last one; and *Iniciar*."""
        last = max((day for day, *_ in await _missions(app)), default=FIRST_DAY - ONE_DAY)
        days = [last + ONE_DAY * (each + 1) for each in range(n)]
        wanted = [store.NewMission(each, each, MediaType.ALL, LANGUAGES) for each in days]
        ids = await app.write(lambda tx: store.add_missions(tx, wanted, actor=WHO))
        await app.write(lambda tx: store.queue_missions(tx, ids, actor=WHO))
        await app.write(lambda tx: store.start(tx, actor=WHO))

    async def at_rest(self, app: Retoma) -> bool:
        """Every mission has ended, and every session with them."""
        row = await (await app.database()).read(lambda tx: tx.one(store.COUNT_MISSIONS))
        return row is not None and not any(row[2:5])

    async def account(self, app: Retoma) -> AdsAccount:
        """What the house says of its missions, held against the library and the table of ads."""
        missions = await _missions(app)
        database = await app.database()
        [(lost,)] = (await database.read(lambda tx: tx.for_caller(TROUBLES)))[0]
        stored = await self._stored()
        library = Library(self._seed)
        wanted = {
            ad.id
            for day, *_ in missions
            for ad in library.find(Wanted(start=day, end=day, languages=frozenset(LANGUAGES)))
        }
        completed = [each for each in missions if each[1] == "completed"]
        found = [
            f"the mission of {day} ended {status}, {code}"
            for day, status, _, code, _ in missions
            if status != "completed"
        ]
        if stored != wanted:
            found.append(f"{len(wanted)} ads are in the library and {len(stored)} are stored")
        if sum(each[2] or 0 for each in completed) != len(stored):
            found.append("the missions have counted other ads than are stored")
        return AdsAccount(
            missions=len(missions),
            completed=len(completed),
            stored=len(stored),
            retried=sum(each[4] or 0 for each in missions),
            sessions_failed=lost,
            problems=found,
        )

    async def _stored(self) -> set[str]:
        target = db.open(self._target)
        try:
            found = await target.read(lambda tx: tx.for_caller(STORED))
            return {row[0] for row in found[0]}
        finally:
            target.close()


def install(app: Retoma, folder: Path) -> Sequence[Application]:
    """The ads orchestrator, in a house of the demo."""
    chosen = settings.read(secret_key_file=str(folder / ADS_KEY_FILE))
    app.install(APP, build_tools(app, chosen))
    return [APP]


async def in_words(app: Retoma) -> str:
    """How the missions stand, in a line."""
    counts: dict[str, int] = {}
    for _, status, *_ in await _missions(app):
        counts[status] = counts.get(status, 0) + 1
    return "ads: " + " · ".join(f"{n} {status}" for status, n in sorted(counts.items()))


async def _missions(
    app: Retoma,
) -> "list[tuple[date, str, int | None, str | None, int | None]]":
    database = await app.database()
    rows = (await database.read(lambda tx: tx.for_caller(MISSIONS)))[0]
    return [(date.fromisoformat(row[0]), *row[1:]) for row in rows]


def rows_of(account: AdsAccount) -> Sequence[tuple[str, int, str]]:
    """For the table at the end of a demo."""
    remark = f"{account.completed} completed, {account.retried} retries in all"
    return [
        ("missions", account.missions, remark),
        ("ads stored", account.stored, "as many as the library has for these days"),
        ("sessions lost", account.sessions_failed, "by the proxy with the wrong password"),
    ]
