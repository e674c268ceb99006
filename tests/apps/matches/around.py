"""What stands around runners of matches: the site in a process of its own, and who is killed.

    with around(folder) as world:
        async with beside(database_url, world, tmp_path) as found: ...

One site serves many houses, one after the other: each reads of its log what came since it was there.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from retoma import Retoma
from retoma.apps.matches import APP, store
from retoma.apps.matches.sandbox import Match, Season
from retoma.apps.matches.service.replays import Replay, Reread
from retoma.apps.matches.store.rows import Round
from retoma.db import Database, adhoc
from retoma.outbound import Outbound
from retoma.toolkit.tools import Tools
from tests.apps.matches.aids import LEAGUE, PARTIAL, WHO, stored_as
from tests.apps.matches.run_matches import settings_for
from tests.apps.runners import all_wait, kill_all, sandbox, travel
from tests.chaos.nursery import Child, Nursery
from tests.clock import TestClock
from tests.engine.aids import eventually
from tests.programs.processes import PATIENCE, Program

SEED = 7
LOOK = 0.03
FIELDS = ("job_id", "match_id", "attempt_count")
OTHERS = """SELECT t.id FROM match_tasks t JOIN match_runs r ON r.id = t.run
JOIN partidas p ON p.id = t.partida
WHERE p.league <> r.league OR p.season <> r.season OR p.round <> r.round
   OR p.home <> t.home OR p.away <> t.away"""
OF_MATCHES = (
    """SELECT j.id, t.run, t.match_key FROM jobs j JOIN match_tasks t ON t.job = j.id"""
)


@dataclass(slots=True)
class Around:
    """The site, and the process that forks runners."""

    site: Program
    nursery: Nursery
    http: httpx2.Client
    season: Season = field(default_factory=lambda: Season(SEED, unfinished=0.0))

    def trouble(self, trouble: str, **how: Any) -> None:
        self._ask("POST", "faults", json={"trouble": trouble, **how})

    def hold(self, what: str, after: int = 0) -> None:
        """It answers so many more pages of a sort, and then nobody until `peace`."""
        self.trouble("hold", path=f"/{LEAGUE}/2026/{what}", after=after, times=None)

    def peace(self) -> None:
        self._ask("DELETE", "faults")

    def draw(self, layout: str) -> None:
        self._ask("POST", "world", json={"layout": layout})

    def log(self, after: int = 0) -> list[dict[str, Any]]:
        return list(self._ask("GET", f"log?after={after}").json())

    def open(self) -> int:
        """How many have asked and are not answered."""
        return len(self._ask("GET", "open").json())

    def _ask(self, method: str, what: str, **how: Any) -> httpx2.Response:
        url = f"{self.site.origin}/_sandbox/{what}"
        return self.http.request(method, url, **how).raise_for_status()


@contextmanager
def around(folder: Path, *, faults: float = 0.0) -> Iterator[Around]:
    told = ("--seed", str(SEED), "--unfinished", "0", "--faults", str(faults))
    with sandbox(folder, "matches", *told) as there:
        yield Around(*there)


@dataclass(slots=True)
class Beside:
    """One database and its rounds, as a person sees them; and the runners."""

    app: Retoma
    world: Around
    folder: Path
    database: Database
    clock: TestClock | None
    before: int  # lines of the site's log that are not ours
    runs: list[int] = field(default_factory=list)
    running: dict[str, Child] = field(default_factory=dict)
    logs: list[Path] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)  # seen on the way
    looks: int = 0

    async def start_rounds(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            of = Round(LEAGUE, 2026, number)

            def start(tx: Any, of: Round = of) -> int:
                return store.runs.start(tx, of, actor=WHO)[0]

            self.runs.append(await self.app.write(start))

    # — runners —

    def start(
        self, name: str, *, slots: int = 8, crash: str = "", spared: Collection[int] = ()
    ) -> Child:
        told = {
            "url": self.app.url,
            "port": self.world.site.port,
            "name": name,
            "slots": slots,
            "crash": crash,
            "spared": list(spared),
            "environment": {} if self.clock is None else self.clock.environment,
        }
        self.logs.append(self.folder / f"{name}.log")
        self.running[name] = self.world.nursery.bear(told, self.logs[-1])
        return self.running[name]

    async def died(self, name: str) -> None:
        child = self.running.pop(name)

        async def has() -> bool:
            return child.poll() is not None

        await eventually(has, within=PATIENCE)

    async def kill(self, name: str) -> int:
        """-9, with requests on their way: how many those were."""

        async def some() -> int:
            return self.world.open()

        met = int(await self.until(some))
        child = self.running.pop(name)
        child.kill()
        child.wait()
        self.world.peace()
        return met

    async def until(
        self, fact: Callable[[], Awaitable[Any]], *, patience: float = PATIENCE
    ) -> Any:
        """Looked at all the while; time is jumped over where all wait for another try."""
        async with asyncio.timeout(patience):
            while not (found := await fact()):
                await self.look()
                if self.clock is not None and self.running and await all_wait(self.database):
                    await travel(self.app, self.clock, self.running)
                await asyncio.sleep(LOOK)
        return found

    # — how it stands —

    async def rows(self, sql: str, **params: Any) -> list[Any]:
        return await self.database.read(lambda tx: tx.all(adhoc(sql), **params))

    async def look(self) -> None:
        """R1 R3: whatever happens, no match is partial, and complete is who has all of them."""
        if partial := await self.rows(PARTIAL):
            self.wrong.append(f"R1: partial matches {partial}")
        lying = await self.rows(
            "SELECT id FROM scrape_jobs WHERE complete = 1 AND"
            " (stored <> expected OR pending + running + failed + not_yet > 0)"
        )
        if lying:
            self.wrong.append(f"R3: complete and are not: {lying}")
        if others := await self.rows(OTHERS):
            self.wrong.append(f"R3: tasks with the match of another: {others}")
        self.looks += 1

    async def discovered(self) -> bool:
        [(left,)] = await self.rows("SELECT count(*) FROM match_runs WHERE expected IS NULL")
        return bool(left == 0)

    async def ended(self) -> bool:
        [(left,)] = await self.rows("SELECT count(*) FROM scrape_jobs WHERE open = 1")
        return bool(left == 0)

    async def stored(self) -> int:
        [(n,)] = await self.rows("SELECT count(*) FROM partidas")
        return int(n)

    async def statuses(self) -> Counter[str]:
        rows = await self.rows("SELECT status, count(*) FROM scrape_tasks GROUP BY status")
        return Counter({status: int(n) for status, n in rows})

    async def replayed(self, layouts: str, *, apply: bool) -> list[Reread]:
        """As `retoma matches replay --code LAYOUT_CHANGED --layouts … [--apply]`."""
        origin = settings_for(self.world.site.port, self.app.url).matches_url
        return await Replay(self.app, origin).of_code(
            "LAYOUT_CHANGED", layouts=layouts, apply=apply, actor=WHO
        )

    def asked(self) -> Counter[str]:
        """How often which page was asked for."""
        return Counter(each["input"] for each in self.world.log(self.before))

    # — the verdict —

    async def problems(self, truth: Iterable[Match]) -> list[str]:
        """Every match is stored whole, or FAILED with its evidence; once all has ended."""
        found = list(self.wrong)
        tasks = await self._tasks()
        stored = await self._matches()
        for match in truth:
            task = tasks.pop((match.round, match.key))
            if task["partida_id"] is None:
                found += await self._without_evidence(match, task)
                continue
            told = stored.pop((match.round, match.key))
            stored_as(match, told)
        found += [f"R2: more than was played: {sorted(stored)}"] if stored else []
        return found + ([f"tasks of nobody: {sorted(tasks)}"] if tasks else [])

    async def _without_evidence(self, match: Match, task: dict[str, Any]) -> list[str]:
        error = task["error"] or {}
        if task["status"] != "FAILED" or not error.get("code"):
            return [f"R4: {match.key} is {task['status']} with {error}"]
        if error.get("status") is None:
            return []  # nobody has answered: there is no page
        page = task["snapshot"] and await self.app.evidence.read(task["snapshot"])
        return [] if page else [f"R4: the page of {match.key} is not there"]

    async def _tasks(self) -> dict[tuple[int, str], dict[str, Any]]:
        found: dict[tuple[int, str], dict[str, Any]] = {}
        for run in self.runs:
            told = await self.database.read(
                lambda tx, run=run: store.tasks.list_tasks(tx, run, after=0, n=100)  # type: ignore[misc]
            )
            found |= {(each.round, each.match_key): asdict(each) for each in told}
        return found

    async def _matches(self) -> dict[tuple[int, str], dict[str, Any]]:
        def read(tx: Any) -> list[dict[str, Any]]:
            listed = store.games.list_matches(tx, after=0, n=10_000)
            return [asdict(store.games.match_seen(tx, each.id)) for each in listed]

        told = await self.database.read(read)
        return {(each["round"], f"{each['home']}-x-{each['away']}"): each for each in told}

    async def lines(self) -> list[dict[str, Any]]:
        """What runners have said of the jobs of matches; each line names whose it is, or is told here."""
        of = {job: (run, key) for job, run, key in await self.rows(OF_MATCHES)}
        named = [line for line in self._said() if line.get("job") in of]
        for line in named:
            if any(name not in line for name in FIELDS):
                self.wrong.append(f"a line without its fields: {line}")
            elif (line["job_id"], line["match_id"]) != of[line["job"]]:
                self.wrong.append(f"a line of somebody else: {line}")
            elif not 1 <= line["attempt_count"] <= 3:
                self.wrong.append(f"a line of no attempt: {line}")
        return named

    def _said(self) -> Iterator[dict[str, Any]]:
        for each in self.logs:
            for line in each.read_text().splitlines(keepends=True):
                if line.startswith("{") and line.endswith("\n"):  # the last of who was killed
                    yield json.loads(line)


@asynccontextmanager
async def beside(
    url: str, world: Around, folder: Path, clock: TestClock | None = None
) -> AsyncIterator[Beside]:
    """With every runner gone at its end, and the site as it was."""
    async with Retoma(url) as app, Outbound(private=frozenset({"127.0.0.1"})) as out:
        app.install(APP, Tools(app, out, settings=settings_for(world.site.port, url)))
        found = Beside(app, world, folder, await app.database(), clock, len(world.log()))
        try:
            yield found
        finally:
            world.peace()
            world.draw("classic")
            kill_all(found.running.values())
