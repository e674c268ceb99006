"""What stands around runners of quotes: the four services in a process of their own, and who is killed.

    with around(folder) as world:
        async with house(database_url, world, tmp_path) as found: ...

One world serves many houses: each asks about numbers that no other has asked about, so that the logs of the
services say whose a call was.
"""

import asyncio
import contextlib
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx2

from retoma import Retoma
from retoma.apps.quotes import APP, store
from retoma.apps.quotes.sandbox import Catalogue, Odd
from retoma.db import Database, DatabaseError, adhoc
from retoma.db.rows import read_json
from retoma.engine import query
from retoma.engine.ops.batches import Batch
from retoma.engine.query import RunnerSeen
from retoma.engine.rules.states import ENDED, State
from retoma.outbound import Outbound
from retoma.toolkit.tools import Tools
from tests.apps.quotes import witness
from tests.apps.quotes.aids import WHO, settings_for
from tests.apps.quotes.witness import SERVICE, C, Calls
from tests.apps.runners import all_wait, kill_all, sandbox, travel
from tests.chaos.nursery import Child, Nursery
from tests.clock import TestClock
from tests.engine.aids import eventually
from tests.programs.processes import PATIENCE, Program

SERVICES = ("anthropic", "serpapi", "fipe", "shops")
LIMITED = ("quotes.anthropic", "quotes.serpapi", "quotes.fipe")
HELD = "JOIN runners r ON r.boot = j.runner WHERE r.pid = :pid AND j.state = 'running'"
AT_ONCE = 4  # pages of one quote
OF_A_CAR = 4  # calls of FIPE: brands, models, years, value
OF_A_LOST_ONE = 3
NO_PLAN = frozenset({Odd.NO_TOOL, Odd.NOT_JSON, Odd.WRONG_SHAPE, Odd.CUT_SHORT, Odd.REFUSED})
LONG = 60.0  # seconds a call may take, unless a test says otherwise
LOOK = 0.05
FEW = 5  # pages of a quote
WATCHED = 500  # jobs whose pages are looked at all the time
ANSWERS = 3  # of a model that gives no plan, each paid


@dataclass(frozen=True, slots=True)
class Ledger:
    """Calls of one service: by its own log, by what the lotes need, and those lost at a kill. `least`:
    without what quotes needed that were buried for being held at three kills."""

    made: int
    least: int
    needed: int
    lost: int


@dataclass(slots=True)
class Around:
    """The services, and the process that forks runners."""

    services: Program
    nursery: Nursery
    http: httpx2.Client
    catalogue: Catalogue = field(default_factory=Catalogue)
    used: int = 0

    def numbers(self, n: int) -> range:
        """That nobody has asked about."""
        self.used += n
        return range(self.used - n, self.used)

    def number(self) -> int:
        """Of a product."""
        while self.catalogue.is_vehicle(self.used):
            self.used += 1
        return self.numbers(1)[0]

    def trouble(self, service: str, trouble: str, **how: Any) -> None:
        """With one of them; `times=None`: until `peace`."""
        self._ask("POST", service, "faults", json={"trouble": trouble, **how})

    def peace(self) -> None:
        for each in SERVICES:
            self._ask("DELETE", each, "faults")

    def log(self, service: str) -> list[dict[str, Any]]:
        return list(self._ask("GET", service, "log").json())

    def open(self, service: str) -> list[dict[str, Any]]:
        """What has come and is not answered."""
        return list(self._ask("GET", service, "open").json())

    def _ask(self, method: str, service: str, what: str, **how: Any) -> httpx2.Response:
        url = f"{self.services.origin}/{service}/_sandbox/{what}"
        return self.http.request(method, url, **how).raise_for_status()


@contextmanager
def around(folder: Path) -> Iterator[Around]:
    with sandbox(folder, "quotes") as there:
        yield Around(*there)


@dataclass(slots=True)
class House:
    """One database and one lote, as a person sees them; and the runners."""

    app: Retoma
    world: Around
    folder: Path
    database: Database
    clock: TestClock | None
    before: int  # lines of the log of FIPE, which say nothing of whose they are
    running: dict[str, Child] = field(default_factory=dict)
    items: dict[int, tuple[int, Odd | None]] = field(default_factory=dict)  # by job
    unknown: Calls = field(default_factory=Counter)
    pages: Counter[int] = field(default_factory=Counter)  # that were on their way at a kill
    wrong: list[str] = field(default_factory=list)  # seen on the way
    tables: int = 0  # calls of FIPE that were on their way
    pause: float = LOOK  # between two looks
    looks: int = 0
    lotes: list[Batch] = field(default_factory=list)
    _tested: set[tuple[int, str]] = field(default_factory=set)

    # — lotes —

    async def lote(self, asked: Iterable[int | tuple[int, Odd | None]]) -> Batch:
        about = [each if isinstance(each, tuple) else (each, None) for each in asked]
        wanted = [store.NewQuote(self.world.catalogue.describe(*each)) for each in about]
        added = await self.app.write(
            lambda tx: store.add_lote(tx, wanted, actor=WHO, name="lote")
        )
        rows = await self.rows(
            "SELECT job FROM quotes WHERE lote = :lote ORDER BY id", lote=added.lote
        )
        self.items |= {job: each for (job,), each in zip(rows, about, strict=True)}
        assert added.lote is not None
        self.lotes.append(await self.app.batches.get(added.lote))
        return self.lotes[-1]

    async def counts(self) -> dict[State, int]:
        return await self.lotes[-1].counts()

    async def until_ended(self, *, patience: float = PATIENCE) -> None:
        """Every quote; time is jumped over where somebody waits for a second try."""
        async with asyncio.timeout(patience):
            while await self._open():
                if self.clock is not None and self.running and await all_wait(self.database):
                    await travel(self.app, self.clock, self.running)
                await self.look()
                await asyncio.sleep(self.pause)

    async def until_share(self, share: float) -> None:
        """Until so much of the lote has ended."""
        async with asyncio.timeout(10 * PATIENCE):
            while (await self.lotes[-1].progress()).share < share:
                await self.look()
                await asyncio.sleep(self.pause)

    async def _open(self) -> bool:
        for each in self.lotes:
            with contextlib.suppress(DatabaseError):
                counts = await each.counts()
                if sum(n for state, n in counts.items() if state not in ENDED):
                    return True
                continue
            return True
        return False

    # — runners —

    def start(
        self,
        name: str,
        *,
        slots: int = 6,
        crash: str = "",
        twice: bool = False,
        patience: float = LONG,
    ) -> Child:
        told = {
            "url": self.app.url,
            "port": self.world.services.port,
            "key": str(self.folder / "key"),
            "name": name,
            "slots": slots,
            "patience": patience,
            "crash": crash,
            "twice": twice,
            "environment": {} if self.clock is None else self.clock.environment,
        }
        self.running[name] = self.world.nursery.bear(told, self.folder / f"{name}.log")
        return self.running[name]

    async def kill(self, name: str) -> Calls:
        """-9; what it had begun and not kept: stopped first, so that nothing is begun after the look."""
        each = self.running.pop(name)
        each.send_signal(signal.SIGSTOP)
        lost = await self._lost(each.pid)
        each.kill()
        each.wait()
        return lost

    async def died(self, name: str) -> Calls:
        """By itself; nobody else works here."""
        each = self.running.pop(name)
        await eventually(lambda: _ended(each), within=PATIENCE)
        return await self._lost(each.pid)

    async def leaves(self, name: str) -> None:
        """It was told to, and ends in order: its row says so, and it holds nothing."""
        each = self.running.pop(name)
        await eventually(lambda: _ended(each), within=PATIENCE)
        assert [] == [
            seen
            for seen in await self.app.runners.list()
            if seen.pid == each.pid and seen.living
        ]

    async def endanger(self, *names: str) -> None:
        """What they are at may be lost, though they live."""
        for name in names:
            await self._lost(self.running[name].pid)

    async def _lost(self, pid: int) -> Calls:
        """What nobody can know of from now on: calls that were begun, and what was on its way."""
        left = await self._at(pid, "begun")
        # Answers that were no plan: that they were a try is told after they are. Only of the very claim
        # that is killed: what failed before it was counted.
        self.unknown += left + await self._at(pid, "failed", "AND s.epoch = j.epoch")
        for job, at in await self.rows(
            f"SELECT j.id, j.checkpoint FROM jobs j {HELD}",  # noqa: S608
            pid=pid,
        ):
            item, odd = self.items[job]
            if at in (C.PRICE_EXTRACTION_START, C.PRICE_EXTRACTION_PROGRESS):
                self.pages[item] += AT_ONCE
            if at == C.AI_ANALYSIS_DONE and self.world.catalogue.is_vehicle(item, odd):
                self.tables += OF_A_CAR
        return left

    async def _at(self, pid: int, state: str, more: str = "") -> Calls:
        rows = await self.rows(
            f"SELECT s.job, s.name FROM steps s JOIN jobs j ON j.id = s.job {HELD}"  # noqa: S608
            f" AND s.state = :state {more}",
            pid=pid,
            state=state,
        )
        return Counter((SERVICE[C(name)], self.items[job][0]) for job, name in rows)

    async def caught(self, name: str) -> bool:
        """Whether it has a paid call on its way; or none is left to be made."""
        counts = await self.counts()
        begun = await self._at(self.running[name].pid, "begun")
        return bool(begun) or not counts.get(State.WAITING)

    async def booted(self, *names: str) -> None:
        async def alive() -> bool:
            return set(names) <= {each.name for each in await self.living()}

        await eventually(alive, within=PATIENCE)

    async def living(self) -> list[RunnerSeen]:
        return [each for each in await self.app.runners.list() if each.living]

    async def flying(self, service: str, n: int) -> None:
        """Until so many of our calls are with that service."""

        async def are() -> bool:
            mine = {item for item, _ in self.items.values()}
            return n <= sum(witness.about(each) in mine for each in self.world.open(service))

        await eventually(are, within=PATIENCE)

    # — the verdict —

    async def rows(self, sql: str, **params: Any) -> list[Any]:
        return await self.database.read(lambda tx: tx.all(adhoc(sql), **params))

    async def look(self) -> None:
        """Q3, Q4: the totals are those of the quotes, and what was tested stays so."""

        def at_once(tx: Any) -> tuple[dict[State, int], Sequence[Any], Sequence[Any]]:
            told = query.count_jobs(tx, self.lotes[-1].id)
            return told, tx.all(STATES, lote=self.lotes[-1].id), tx.all(TESTED, most=WATCHED)

        with contextlib.suppress(DatabaseError):  # it was restarted under us
            told, states, tested = await self.database.read(at_once)
            counted = {State(state): n for state, n in states}
            if {state: n for state, n in told.items() if n} != counted:
                self.wrong.append(f"Q4: the lote says {told}, its quotes {counted}")
            now = {(job, key) for job, key in tested}
            if lost := self._tested - now:
                self.wrong.append(
                    f"Q3: {len(lost)} tested products are gone: {sorted(lost)[:3]}"
                )
            self._tested |= now
            self.looks += 1

    def lines(self, service: str) -> list[witness.Line]:
        """What the log of a service says of our own calls."""
        mine = {item for item, _ in self.items.values()}
        return [each for each in self.world.log(service) if witness.about(each) in mine]

    async def problems(self) -> list[str]:
        """Q1 to Q5; once all has ended."""
        found = list(self.wrong)
        for service in ("anthropic", "serpapi"):
            calls = witness.paid(service, self.lines(service))
            found += witness.overpaid(calls, self.unknown, self._needed())
        found += witness.asked_again(witness.pages(self.lines("shops")), self.pages)
        return found + await self._by_their_timelines()

    def _needed(self) -> Calls:
        """Of whom more than one answer is wanted, if the first is no plan."""
        asked = self.items.values()
        return Counter({("anthropic", item): ANSWERS for item, odd in asked if odd in NO_PLAN})

    async def ledger(self) -> dict[str, Ledger]:
        """All calls, service by service."""
        buried = {
            job for (job,) in await self.rows("SELECT id FROM jobs WHERE code = 'poison'")
        }
        needed = self._calls_of(self.items.values())
        least = self._calls_of(each for job, each in self.items.items() if job not in buried)
        unknown = Counter(service for service, _ in self.unknown.elements())
        pages = self.lines("shops")
        made = {name: len(self.lines(name)) for name in ("anthropic", "serpapi")}
        made["fipe"] = len(self.world.log("fipe")) - self.before
        lost = {**unknown, "fipe": self.tables}
        once = len(witness.pages(pages))
        return {
            **{
                name: Ledger(made[name], least[name], needed[name], lost.get(name, 0))
                for name in made
            },
            "shops": Ledger(len(pages), once, once, self.pages.total()),
        }

    def _calls_of(self, asked: Iterable[tuple[int, Odd | None]]) -> Counter[str]:
        """What these need of each service, if nobody is killed."""
        calls: Counter[str] = Counter()
        for item, odd in asked:
            calls["anthropic"] += ANSWERS if odd in NO_PLAN else 1
            if self.world.catalogue.is_vehicle(item, odd):
                calls["fipe"] += OF_A_LOST_ONE if odd is Odd.UNKNOWN_CAR else OF_A_CAR
            elif odd not in NO_PLAN:
                calls["serpapi"] += 1
        return calls

    async def _by_their_timelines(self) -> list[str]:
        states = {
            job: (state, read_json(result))
            for job, state, result in await self.rows("SELECT id, state, result FROM jobs")
            if job in self.items
        }
        rows = await self.rows(
            "SELECT job, details FROM events WHERE type IN ('step_saved', 'step_failed')"
            " ORDER BY job, seq"
        )
        ways = {
            job: [str(read_json(details)["step"]) for _, details in those]
            for job, those in groupby(rows, key=lambda row: row[0])
        }
        found = [
            f"quote {job} is {s}" for job, (s, _) in states.items() if s not in ("done", "dead")
        ]
        for job in self.items:
            state, result = states[job]
            found += witness.off_the_diagram(job, ways.get(job, []), done=state == "done")
            if state == "done":
                found += witness.unfounded(job, result, ways[job])
        return found


STATES = adhoc("SELECT state, count(*) FROM jobs WHERE batch = :lote GROUP BY state")
TESTED = adhoc(
    "SELECT job, key FROM steps WHERE name = 'PRICE_EXTRACTION_PROGRESS' AND state = 'saved'"
    " AND job <= :most"
)


async def _ended(child: Child) -> bool:
    return child.poll() is not None


@asynccontextmanager
async def house(
    url: str, world: Around, folder: Path, clock: TestClock | None = None
) -> AsyncIterator[House]:
    """With every runner gone at its end, and the services well again."""
    async with Retoma(url) as app, Outbound(private=frozenset({"127.0.0.1"})) as out:
        settings = settings_for(world.services.port, url)
        app.install(APP, Tools(app, out, settings=settings, key_file=folder / "key"))
        for each in LIMITED:
            await app.rates.set(each, 10_000)
        await app.knobs.set("quotes.max_products", FEW)
        found = House(app, world, folder, await app.database(), clock, len(world.log("fipe")))
        try:
            yield found
        finally:
            world.peace()
            kill_all(found.running.values())
