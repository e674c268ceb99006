"""The ads: a site, proxies, workers and a writer, each a program of ours, and missions for them.

One of the proxies is given with a wrong password, and one of the workers fails its first scrapes; half way a
worker is killed. Where all of it listens is written down, so that the next `retoma up` finds what this one has
left. The library says which ads there are, and the table that the writer fills which were brought home.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from retoma import db, settings
from retoma.apps.ads import APP, store
from retoma.apps.ads.model import MediaType, NewMission
from retoma.apps.ads.sandbox import Library, Wanted
from retoma.apps.ads.store import EXTRACTION
from retoma.bootstrap import build_tools
from retoma.db import verbatim
from retoma.demo.account import Witness
from retoma.demo.board import Bar, Board
from retoma.demo.boxed_world import LOOK, WHO, BoxedWorld, Counts
from retoma.demo.world import World
from retoma.engine.ports import Ids
from retoma.engine.rules.states import State
from retoma.engine.run.transaction import Transaction
from retoma.library import Retoma
from retoma.outbound import Outbound
from retoma.programs.writer import Desk
from retoma.programs.writer import Wanted as Profile
from retoma.secret import Secret
from retoma.vault import Vault
from retoma.words import Said, say

COLOURS: Final = ("red", "blue", "green", "amber")
LAYOUTS: Final = ("gallery", "archive")
FAILS: Final = 2  # scrapes of the failing worker: no mission can meet so many of them in a row
POLL: Final = 0.5  # seconds: a person is watching
FIRST_DAY: Final = date(2025, 3, 1)
ONE_DAY: Final = timedelta(days=1)
LANGUAGES: Final = ("pt", "en")
NOBODY: Final = "nobody"  # has said yet whether the orchestrator is to work
STATES: Final = {
    "pending": State.WAITING,
    "queued": State.WAITING,
    "running": State.RUNNING,
    "completed": State.DONE,
}
TABLE: Final = verbatim(
    "CREATE TABLE IF NOT EXISTS ads (id text PRIMARY KEY, title text, advertiser text, text text,"
    " language text, media_type text, url text, qtd_ads integer, date text)"
)
STORED: Final = verbatim("SELECT id FROM ads")
MISSIONS: Final = verbatim(
    "SELECT date_start, status, ads_count, error_code, retry_count FROM missions"
)
SESSIONS: Final = verbatim("SELECT count(*) FROM ads_sessions WHERE ended_at IS NULL")
AT_WORK: Final = verbatim(
    "SELECT w.name FROM workers w JOIN missions m ON m.id = w.current_mission_id"
    " WHERE m.status = 'running' AND m.worker_job_id IS NOT NULL ORDER BY w.name"
)


@dataclass(frozen=True, slots=True)
class AdsSize:
    """How much of it there is."""

    workers: int
    proxies: int
    missions: int


@dataclass(frozen=True, slots=True)
class Mission:
    """What the house says of one."""

    day: date
    status: str
    ads: int
    code: str | None
    retries: int


class AdsWorld(BoxedWorld):
    """Around one house, in one folder of it."""

    application = APP
    kind = EXTRACTION

    def __init__(self, place: World, size: AdsSize, seed: int) -> None:
        super().__init__(place, seed)
        self.size = size
        self._key_file = self._folder / "key"
        self._known = False  # whether the house was told of these programs the last time

    @property
    def addresses(self) -> Mapping[str, str]:
        return {}  # the house has them in its tables

    # — the programs —

    def settle(self) -> None:
        self._remember_ports()
        self._known = self._key_file.exists()

    async def start(self) -> None:
        async with asyncio.TaskGroup() as group:
            for name in COLOURS[: self.size.proxies]:
                group.create_task(self._run(name, "sandbox", "proxy", name))
            group.create_task(
                self._run("writer", "writer-service", "--database", self._writers)
            )
            site = await self._run("site", "sandbox", "ads", "--seed", str(self._seed))
            for n in range(self.size.workers):
                group.create_task(self._run_worker(n, site.origin))

    async def _run_worker(self, n: int, site: str) -> None:
        name = _worker(n)
        data = self._folder / name
        fails = name == self._failing
        if fails and not data.exists():
            data.mkdir(mode=0o700)
            told = {"session": [], "scrape": ["fails"] * FAILS, "marked": {}}
            (data / "misbehave.json").write_text(json.dumps(told), encoding="utf-8")
        await self._run(
            name,
            *("worker-service", "--site", site, "--adapter", LAYOUTS[n % len(LAYOUTS)]),
            *("--data", str(data), "--watch", "2", *(("--misbehave",) if fails else ())),
        )

    async def _run(self, name: str, *words: str) -> Any:
        key = self._key()
        environment = {
            "RETOMA_API_KEY": key,
            "RETOMA_SANDBOX_PROXY": f"{WHO}:{key}",
            "RETOMA_SECRET_KEY_FILE": str(self._place.key_file),
            "RETOMA_APPLICATIONS": "",
        }
        return await self._launch(name, *words, environment=environment)

    def _key(self) -> str:
        """By which all of them know each other: made once."""
        if not self._key_file.exists():
            self._key_file.touch(mode=0o600)
            self._key_file.write_text(Ids().new() + Ids().new(), encoding="utf-8")
        return self._key_file.read_text(encoding="utf-8")

    @property
    def _writers(self) -> str:
        return f"sqlite:///{self._folder / 'writer.db'}"

    @property
    def _target(self) -> str:
        return f"sqlite:///{self._folder / 'ads.db'}"

    # — what the house knows —

    async def introduce(self, app: Retoma) -> None:
        await self._profile()
        if self._known:
            return
        tools = build_tools(app, settings.read())
        secrets = store.Secrets(await (await tools.vault()).sealer(), WHO)
        await tools.close()
        key = Secret(self._key())

        def add(tx: Transaction) -> None:
            for n in range(self.size.workers):
                each = self.programs[_worker(n)]
                at = {"url": each.origin, "storage_domain": each.server}
                store.add_worker(tx, secrets, name=_worker(n), api_key=key, **at)
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
        await app.knobs.set("ads.proxy_test_url", self.programs["site"].origin)
        await app.write(add)

    async def _profile(self) -> None:
        """What the writer may be asked for: this table, from these workers."""
        target = db.open(self._target)
        await target.write(lambda tx: tx.for_caller(TABLE), verb="demo")
        target.close()
        retoma = Retoma(self._writers)
        desk = Desk(
            retoma,
            lambda database: Vault(database, retoma.ids, key_file=self._place.key_file),
            Outbound(private=frozenset({"127.0.0.1"})),
        )
        wanted = Profile(
            name="ads",
            table="ads",
            schema="public",
            conflict_key="id",
            json_path="ads",
            origins=[self.programs[_worker(n)].origin for n in range(self.size.workers)],
        )
        async with retoma:
            await desk.ready()
            await desk.add(wanted, Secret(self._target), {}, actor=WHO)
            await desk.close()

    # — missions —

    async def begin(self, app: Retoma) -> None:
        """Each for the day after the last one; and *Iniciar*, unless a person has said *Parar*."""
        missions = await (await app.database()).read(_missions)
        last = max((each.day for each in missions), default=FIRST_DAY - ONE_DAY)
        days = [last + ONE_DAY * (each + 1) for each in range(self.size.missions)]
        wanted = [NewMission(each, each, MediaType.ALL, LANGUAGES) for each in days]
        ids = await app.write(lambda tx: store.add_missions(tx, wanted, actor=WHO))
        await app.write(lambda tx: store.queue_missions(tx, ids, actor=WHO))
        await app.write(start_unless_stopped)
        self.begun += len(ids)

    def told(self) -> Said:
        return say(
            "ads: missions {n}, workers {workers}, proxies {proxies}, a site and a writer",
            n=self.size.missions,
            workers=self.size.workers,
            proxies=self.size.proxies,
        )

    def stands(self, tx: db.Transaction, counts: Counts) -> Bar:  # noqa: ARG002 — missions are no jobs
        """At rest when every mission has ended, and every session with them."""
        states = Counter(STATES.get(each.status, State.DEAD) for each in _missions(tx))
        [(sessions,)] = tx.for_caller(SESSIONS)[0]
        return Bar(self.begun, states, sessions)

    async def misfortune(self, app: Retoma, board: Board) -> None:
        """A worker is killed over a scrape; started again, it goes on with it."""
        name = await self._one_at_work(app, board)
        self.programs[name].kill()
        await self.programs[name].ended()
        board.tell(say("ads: {name} killed with kill -9, at work", name=name))
        killed = board.clock.now()
        await self._run_worker(int(name.rpartition("-")[2]) - 1, self.programs["site"].origin)
        took = f"{board.clock.now() - killed:.1f}"
        board.tell(say("ads: {name} is back after {took} s", name=name, took=took))

    async def _one_at_work(self, app: Retoma, board: Board) -> str:
        """Not the one that fails by itself: a mission bears so much and no more."""
        may = {_worker(n) for n in range(self.size.workers)} - {self._failing}
        database = await app.database()
        while True:
            at_work = await database.read(lambda tx: tx.for_caller(AT_WORK)[0])
            if found := [name for (name,) in at_work if name in may]:
                return str(found[0])
            if any(each.status == "completed" for each in await database.read(_missions)):
                return _worker(0)  # between two scrapes: as good
            await board.clock.sleep(LOOK)

    @property
    def _failing(self) -> str | None:
        """The last of several."""
        return _worker(self.size.workers - 1) if self.size.workers > 1 else None

    async def witness(self, app: Retoma, recovered: int) -> Witness:  # noqa: ARG002 — nothing is paid
        missions = await (await app.database()).read(_missions)
        stored = await self._stored()
        library = Library(self._seed)
        there = [
            ad.id
            for each in missions
            for ad in library.find(
                Wanted(start=each.day, end=each.day, languages=frozenset(LANGUAGES))
            )
        ]
        counted = sum(each.ads for each in missions)
        return Witness(
            wanted={
                **{f"the mission of {each.day}": "completed" for each in missions},
                **dict.fromkeys(there, "stored"),
            },
            found=[
                *(
                    (f"the mission of {each.day}", each.code or each.status)
                    for each in missions
                ),
                *((ad, "stored") for ad in stored),
            ],
            retried=sum(each.retries for each in missions),
            also=[f"the missions have counted {counted} ads, and {len(stored)} are stored"]
            if counted != len(stored)
            else [],
        )

    async def _stored(self) -> list[str]:
        target = db.open(self._target)
        try:
            found = await target.read(lambda tx: tx.for_caller(STORED))
            return [row[0] for row in found[0]]
        finally:
            target.close()


def _worker(n: int) -> str:
    return f"worker-{n + 1}"


def start_unless_stopped(tx: Transaction) -> None:
    state = store.get_state(tx)
    if state.wish == "started" or state.changed_by in (NOBODY, WHO):
        store.start(tx, actor=WHO)


def _missions(tx: db.Transaction) -> list[Mission]:
    return [
        Mission(date.fromisoformat(day), status, ads or 0, code, retries or 0)
        for day, status, ads, code, retries in tx.for_caller(MISSIONS)[0]
    ]
