"""What stands around runners of documents: OpenRouter in a process of its own, and who is killed.

    with around(folder) as world:
        async with house(database_url, world, tmp_path) as found: ...

One world serves many houses: each hands in documents with numbers that no other has, so that the log of the
service says whose a call was.
"""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2

from retoma import Retoma
from retoma.apps.documents import APP, store
from retoma.apps.documents.contents import Contents
from retoma.apps.documents.model import TERMINAL, DocumentStatus, Label, ProjectRules
from retoma.apps.documents.sandbox import ENDS, LABELS, Odd, Paper, Papers
from retoma.apps.documents.steps import CLASSIFY, OPENROUTER
from retoma.apps.documents.store.documents import Which
from retoma.apps.documents.store.executions import NewDocument
from retoma.db import Database, adhoc
from retoma.outbound import Outbound
from retoma.toolkit.tools import Tools
from tests.apps.documents.run_documents import settings_for
from tests.apps.runners import all_wait, kill_all, sandbox, travel
from tests.chaos.nursery import Child, Nursery
from tests.clock import TestClock
from tests.engine.aids import eventually
from tests.programs.processes import PATIENCE, Program

WHO = "ana"
LOOK = 0.05
RULES = ProjectRules(labels=tuple(Label(name, why) for name, why in LABELS.items()))
HELD = "JOIN runners r ON r.boot = j.runner WHERE r.pid = :pid AND j.state = 'running'"
# Whose answers are paid for and of no use: asked for at every try.
USELESS = frozenset(list(Odd)[list(Odd).index(Odd.PROSE) :]) - {Odd.INJECTION}


@dataclass(slots=True)
class Around:
    """The service, and the process that forks runners."""

    service: Program
    nursery: Nursery
    http: httpx2.Client
    papers: Papers = field(default_factory=Papers)
    used: int = 0

    def some(self, n: int, odd: Iterable[Odd] = ()) -> list[Paper]:
        """Documents that nobody has handed in; the odd ones anywhere among them."""
        kinds: list[Odd | None] = [*odd]
        kinds += [None] * (n - len(kinds))
        random.Random(self.used).shuffle(kinds)
        self.used += n
        return [
            self.papers.make(self.used - n + place, kind) for place, kind in enumerate(kinds)
        ]

    def hold(self, after: int = 0) -> None:
        """It answers so many more, and then nobody until `peace`."""
        self._ask("POST", "faults", json={"trouble": "hold", "times": None, "after": after})

    def peace(self) -> None:
        self._ask("DELETE", "faults")

    def log(self) -> list[dict[str, Any]]:
        return list(self._ask("GET", "log").json())

    def open(self) -> list[dict[str, Any]]:
        """What has come and is not answered."""
        return list(self._ask("GET", "open").json())

    def _ask(self, method: str, what: str, **how: Any) -> httpx2.Response:
        url = f"{self.service.origin}/_sandbox/{what}"
        return self.http.request(method, url, **how).raise_for_status()


@contextmanager
def around(folder: Path) -> Iterator[Around]:
    with sandbox(folder, "documents") as there:
        yield Around(*there)


@dataclass(slots=True)
class House:
    """One database and one execution, as a person sees them; and the runners."""

    app: Retoma
    world: Around
    folder: Path
    database: Database
    clock: TestClock | None
    execution: int = 0
    papers: dict[int, Paper] = field(default_factory=dict)  # by job
    running: dict[str, Child] = field(default_factory=dict)
    unknown: Counter[int] = field(default_factory=Counter)  # calls on their way at a kill
    wrong: list[str] = field(default_factory=list)  # seen on the way
    quick: bool = True
    looks: int = 0

    async def hand_in(self, papers: Sequence[Paper], codes: Sequence[str] = ()) -> int:
        """All of them, and under more codes copies of the first ones."""
        kept = Contents(self.app)
        file = self.folder / "handed-in"
        wanted = []
        for paper in papers:
            digest = sha256(paper.content).hexdigest()
            file.write_bytes(paper.content)
            await kept.keep(file, digest, len(paper.content))
            wanted.append(NewDocument(paper.codigo, paper.name, digest, len(paper.content)))
        wanted += [
            NewDocument(code, first.name, first.sha256, first.size)
            for code, first in zip(codes, wanted, strict=False)
        ]
        self.execution = await self.app.write(self._begin(wanted))
        every = [*papers, *papers[: len(codes)]]
        self.papers = {
            told["job"]: paper for told, paper in zip(await self.results(), every, strict=True)
        }
        return self.execution

    def _begin(self, wanted: Sequence[NewDocument]) -> Any:
        def begin(tx: Any) -> int:
            project = store.projects.add_project(tx, "PGE", RULES, actor=WHO)
            return store.executions.add_execution(tx, project, wanted, actor=WHO)

        return begin

    async def results(self) -> list[dict[str, Any]]:
        results = await self.database.read(
            lambda tx: store.documents.list_results(
                tx, self.execution, Which(), after=0, n=10_000
            )
        )
        return [asdict(each) for each in results]

    async def status(self) -> str:
        stand = await self.database.read(
            lambda tx: store.executions.stand_of(tx, self.execution)
        )
        return str(stand.status)

    async def until_share(self, share: float, *, patience: float = PATIENCE) -> None:
        """Until so much of it has ended; time is jumped over where all wait for another try."""
        async with asyncio.timeout(patience):
            while await self._look() < share:
                if self.clock is not None and self.running and await all_wait(self.database):
                    await travel(self.app, self.clock, self.running)
                await asyncio.sleep(LOOK)

    async def _look(self) -> float:
        """C1: whatever happens, each document is in one status."""
        counts = await self.database.read(
            lambda tx: store.executions.counted(tx, self.execution)
        )
        self.looks += 1
        if sum(counts.values()) != len(self.papers):
            self.wrong.append(f"C1: {len(self.papers)} documents are {counts}")
        return store.executions.ended(counts) / len(self.papers)

    # — runners —

    def start(self, name: str, *, slots: int = 6) -> None:
        told = {
            "url": self.app.url,
            "port": self.world.service.port,
            "name": name,
            "slots": slots,
            "quick": self.quick,
            "folder": str(self.folder),
            "environment": {} if self.clock is None else self.clock.environment,
        }
        self.running[name] = self.world.nursery.bear(told, self.folder / f"{name}.log")

    async def flying(self, n: int = 1, *, patience: float = PATIENCE) -> None:
        """Until so many of our calls are with the service."""

        async def are() -> bool:
            await self._look()
            return n <= self._open()

        await eventually(are, within=patience)

    async def peace(self) -> None:
        """Whoever was held is answered, and nobody is with the service any more."""
        self.world.peace()

        async def none() -> bool:
            return not self._open()

        await eventually(none, within=PATIENCE)

    def _open(self) -> int:
        mine = {paper.n for paper in self.papers.values()}
        return sum(each["item"] in mine for each in self.world.open())

    async def kill(self, name: str) -> int:
        """-9; how many calls it had begun: stopped first, so that nothing is begun after the look."""
        each = self.running.pop(name)
        each.send_signal(signal.SIGSTOP)
        begun = await self._at(each.pid, "begun")
        # Answers of no use: that they were a try is told after they are.
        self.unknown += begun + await self._at(each.pid, "failed")
        each.kill()
        each.wait()
        return begun.total()

    async def _at(self, pid: int, state: str) -> Counter[int]:
        rows = await self.rows(
            f"SELECT s.job FROM steps s JOIN jobs j ON j.id = s.job {HELD}"  # noqa: S608
            " AND s.state = :state AND s.name = :name",
            pid=pid,
            state=state,
            name=CLASSIFY,
        )
        return Counter(self.papers[job].n for (job,) in rows)

    # — the verdict —

    async def rows(self, sql: str, **params: Any) -> list[Any]:
        return await self.database.read(lambda tx: tx.all(adhoc(sql), **params))

    def asked(self) -> Counter[int]:
        """How often the service was asked about each of ours, whatever it answered."""
        mine = {paper.n for paper in self.papers.values()}
        return Counter(each["item"] for each in self.world.log() if each["item"] in mine)

    async def problems(self) -> list[str]:
        """C1, C2, C6 and what each document should have come to; once all has ended."""
        found = list(self.wrong)
        for told in await self.results():
            found += self._ended_badly(self.papers[told["job"]], told)
        return found + self._overpaid()

    def _ended_badly(self, paper: Paper, told: dict[str, Any]) -> list[str]:
        if DocumentStatus(told["status"]) not in TERMINAL:
            return [f"{told['codigo']} is {told['status']}"]
        codes = {paper.code}
        if paper.odd is Odd.ENDLESS:  # it swells, too: whichever limit it meets first
            codes |= {"child_died", "out_of_memory"}
        label, code = told["rotulo"], told["erro_codigo"]
        if label == paper.label and (label is not None or code in codes):
            return []
        return [f"{told['codigo']} ended with {(label, code)}, not {(paper.label, paper.code)}"]

    def _overpaid(self) -> list[str]:
        """C6: once each; again for every call that was on its way at a kill, and for answers of no use."""
        by_number = {paper.n: paper for paper in self.papers.values()}
        copies = Counter(paper.n for paper in self.papers.values())
        found = []
        for n, times in self.asked().items():
            odd = by_number[n].odd
            needed = RULES.attempts * copies[n] if odd in USELESS else 1
            if odd is not None and odd not in USELESS and ENDS[odd] is not None:
                needed = 0
            if times > needed + self.unknown[n]:
                found.append(
                    f"C6: asked {times} times about {n}, {self.unknown[n]} were on their way"
                )
        return found


@asynccontextmanager
async def house(
    url: str, world: Around, folder: Path, clock: TestClock | None = None
) -> AsyncIterator[House]:
    """With every runner gone at its end, and the service well again."""
    async with Retoma(url) as app, Outbound(private=frozenset({"127.0.0.1"})) as out:
        app.install(APP, Tools(app, out, settings=settings_for(world.service.port, url)))
        await app.rates.set(OPENROUTER, 10_000)
        found = House(app, world, folder, await app.database(), clock)
        try:
            yield found
        finally:
            world.peace()
            kill_all(found.running.values())
