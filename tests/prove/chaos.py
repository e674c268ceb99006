"""Minutes of everything at once: processes killed and stopped, connections cut, statements cancelled, the
server restarted, the disk full, while jobs come and go. In rounds, each over a new database, each judged."""

import asyncio
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg

from retoma.engine.rules.events import EventType
from tests import services
from tests.chaos import jobs
from tests.chaos.disk import Disk
from tests.chaos.history import History
from tests.chaos.test_kill import holds_suspect
from tests.chaos.test_siege import held_by_a_stranger
from tests.chaos.world import Process, World
from tests.clock import TestClock
from tests.databases import ENGINE_ONLY, migrate
from tests.proxy import Proxy

ROUND = 60.0  # seconds of faults over one database
RUNNERS = 3
SLOTS = 6
OPEN = 40  # jobs that wait or run at a time
PAUSE = (0.1, 0.9)  # seconds between two faults
CANCEL = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'retoma %' AND datname = current_database()"
END = CANCEL.replace("cancel", "terminate")


@dataclass(slots=True)
class Tally:
    """What happened in all rounds of one database."""

    faults: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    claims: int = 0
    lost: int = 0
    steps: int = 0
    starts: int = 0
    again: int = (
        0  # steps that were begun more than once: their claim ended before they were kept
    )
    rounds: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, found: History) -> None:
        self.rounds += 1
        self.states.update(str(job.state) for job in found.jobs)
        self.claims += sum(event.type is EventType.CLAIMED for event in found.events)
        self.lost += sum(event.type is EventType.LOST for event in found.events)
        self.steps += sum(event.type is EventType.STEP_SAVED for event in found.events)
        starts = Counter((e.job, e.step) for e in found.effects if e.phase == "start")
        self.starts += sum(starts.values())
        self.again += sum(n > 1 for n in starts.values())

    def table(self, database: str, minutes: float) -> str:
        rows = {
            "minutes": f"{minutes:.1f}",
            "rounds": self.rounds,
            **{f"fault: {name}": n for name, n in sorted(self.faults.items())},
            **{f"jobs {name}": n for name, n in sorted(self.states.items())},
            "claims": self.claims,
            "claims lost and taken back": self.lost,
            "steps committed": self.steps,
            "step functions started": self.starts,
            "steps started more than once, never after their commit": self.again,
            "violations": len(self.wrong),
        }
        width = max(map(len, rows))
        return "\n".join(
            [database, *(f"{name.ljust(width)}  {n:>8}" for name, n in rows.items())]
        )


def run(databases: Sequence[str], minutes: float, seed: int) -> int:
    """So many minutes for each database; 1 where something was wrong."""
    failed = 0
    for name in databases:
        tally, began = Tally(), time.monotonic()
        with ExitStack() as stack:
            server = None
            if name == "postgres":
                server = stack.enter_context(services.PostgresServer(services.DURABLE))
            until = began + minutes * 60
            while time.monotonic() < until:
                number = seed + tally.rounds
                lasts = min(ROUND, until - time.monotonic())
                asyncio.run(one_round(server, number, lasts, tally))
                shown = f"{name}: round {tally.rounds}, seed {number}, {sum(tally.faults.values())} faults"
                print(
                    f"{shown}, {sum(tally.states.values())} jobs, {len(tally.wrong)} violations",
                    flush=True,
                )
        print(tally.table(name, (time.monotonic() - began) / 60), flush=True)
        failed |= bool(tally.wrong)
    return int(failed)


async def one_round(
    server: services.PostgresServer | None, seed: int, lasts: float, tally: Tally
) -> None:
    with tempfile.TemporaryDirectory(prefix="retoma-chaos-") as home, ExitStack() as stack:
        folder = Path(home) / "world"
        folder.mkdir()
        url = stack.enter_context(_database(server, folder))
        proxy = stack.enter_context(Proxy(url)) if server is not None else None
        world = World(url, folder, TestClock(folder / "clock", url), seed)
        async with world:
            storm = Storm(world, server, proxy, tally)
            await storm.blow(lasts)
            try:
                await world.wait_ended()
                tally.add(await world.verdict())
            except AssertionError as error:
                tally.rounds += 1
                tally.wrong.append(str(error))
                print(f"VIOLATION --seed {seed}\n{error}\n{world.last_words()}", flush=True)


@contextmanager
def _database(server: services.PostgresServer | None, folder: Path) -> Iterator[str]:
    if server is None:
        url = f"sqlite:///{folder / 'work.db'}"
        migrate(url, ENGINE_ONLY)
        yield url
        return
    name = f"chaos_{random.getrandbits(40):x}"
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    url = server.database_dsn(name)
    migrate(url, ENGINE_ONLY)
    yield url
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


class Storm:
    """What befalls one world."""

    def __init__(
        self,
        world: World,
        server: services.PostgresServer | None,
        proxy: Proxy | None,
        tally: Tally,
    ) -> None:
        self._world = world
        self._server = server
        self._proxy = proxy
        self._tally = tally
        self._disk = Disk(world.url, world.folder / "full")
        self._runners: list[Process] = []
        self._submitted = 0

    async def blow(self, seconds: float) -> None:
        """Faults for so long, one after another, while jobs are submitted; then none any more."""
        world = self._world
        until = time.monotonic() + seconds
        await world.app.pools.declare("things", {f"thing {n}": n for n in range(3)})
        self._runners = [self._start(n) for n in range(RUNNERS)]
        await world.booted(*self._runners)
        faults = self._faults()
        submitting = asyncio.create_task(self._submit_until(until))
        try:
            while time.monotonic() < until:
                await asyncio.sleep(world.rng.uniform(*PAUSE))
                name = world.rng.choice(list(faults))
                with suppress(
                    psycopg.OperationalError
                ):  # the server was busy with the fault before
                    await faults[name]()
                self._tally.faults[name] += 1
        finally:
            await submitting

    def _faults(self) -> dict[str, Callable[[], Awaitable[None]]]:
        faults: dict[str, Callable[[], Awaitable[None]]] = {
            "kill": self._kill,
            "stop for a lease": self._stop,
            "stop for a moment": self._pause,
            "disk full": self._fill,
            "locked by a stranger": self._lock,
        }
        if self._server is not None:
            faults |= {
                "connections cut": self._cut,
                "connections half open": self._leave,
                "statements cancelled": lambda: self._ask_server(CANCEL),
                "sessions ended": lambda: self._ask_server(END),
                "server restarted": self._restart,
            }
        return faults

    def _start(self, place: int) -> Process:
        environment = dict(self._disk.environment)
        if self._proxy is not None:
            environment[jobs.URL] = self._proxy.url
        name = f"runner {place}"
        told = {"name": name, "tick": 1.0, "slots": SLOTS}
        return self._world.start(name, "tests.chaos.run_runner", told, environment)

    async def _submit_until(self, until: float) -> None:
        rng = self._world.rng
        while time.monotonic() < until:
            with suppress(Exception):  # the server may be away just now
                if await self._world.count_open() < OPEN:
                    await self._submit(rng)
                    continue
            await asyncio.sleep(0.02)

    async def _submit(self, rng: random.Random) -> None:
        n = self._submitted
        self._submitted += 1
        chain = {
            "steps": rng.randrange(1, 4),
            "ms": rng.randrange(1, 30),
            "each": n % 3,
            "n": n,
        }
        kind, payload = rng.choice(
            [
                ("chain", chain | {"fails": int(n % 9 == 0)}),
                ("chain", chain),
                ("capped", {"site": f"s{n % 3}", "ms": rng.randrange(1, 30), "n": n}),
                ("borrow", {"scope": rng.choice(["attempt", "job"]), "ms": 20, "n": n}),
            ]
        )
        for _ in range(200):
            try:
                await self._world.submit(kind, payload, key=f"{kind} {n}")
            except Exception:  # noqa: BLE001 — whatever the server was at
                await asyncio.sleep(0.05)  # the same key and payload: the same job
            else:
                return

    # — faults —

    async def _victim(self) -> int | None:
        """One that holds no suspect: a third loss in a row is poison by definition."""
        place = self._world.rng.randrange(RUNNERS)
        with suppress(Exception):
            if self._runners[place].running and not await holds_suspect(
                self._world, self._runners[place]
            ):
                return place
        return None

    async def _kill(self) -> None:
        place = await self._victim()
        if place is not None:
            self._world.kill(self._runners[place])
            self._runners[place] = self._start(place)

    async def _stop(self) -> None:
        """Longer than its lease: others take what it held, and it finds out."""
        place = await self._victim()
        if place is None:
            return
        frozen = self._runners[place]
        others = [each for each in self._runners if each is not frozen and each.running]
        await self._world.freeze(frozen)
        try:
            with suppress(AssertionError):  # the others may have been killed just before
                await self._world.travel(61, alive=others)
        finally:
            frozen.send(signal.SIGCONT)

    async def _pause(self) -> None:
        frozen = self._world.rng.choice(self._runners)
        frozen.send(signal.SIGSTOP)
        await asyncio.sleep(self._world.rng.uniform(0.05, 0.5))
        frozen.send(signal.SIGCONT)

    async def _fill(self) -> None:
        what = self._world.rng.choice(["pages", "log"])
        await asyncio.to_thread(_until_done, partial(self._disk.fill, what))
        await asyncio.sleep(self._world.rng.uniform(0.2, 1.5))
        await asyncio.to_thread(_until_done, self._disk.free)

    async def _lock(self) -> None:
        seconds = self._world.rng.uniform(0.1, 1.0)
        await asyncio.to_thread(_hold, self._world.url, seconds)

    async def _cut(self) -> None:
        assert self._proxy is not None
        self._proxy.cut()

    async def _leave(self) -> None:
        assert self._proxy is not None
        self._proxy.cut(leave_server=True)

    async def _ask_server(self, statement: str) -> None:
        def ask() -> None:
            with suppress(psycopg.Error), psycopg.connect(self._world.url) as server:
                server.execute(statement.encode())

        await asyncio.to_thread(ask)

    async def _restart(self) -> None:
        assert self._server is not None
        await asyncio.to_thread(self._server.restart, "immediate")


def _until_done(change: Callable[[], None]) -> None:
    """On PostgreSQL it takes locks of tables at which everybody works: the server may choose us to lose."""
    while True:
        with suppress(psycopg.OperationalError):
            return change()


def _hold(url: str, seconds: float) -> None:
    with held_by_a_stranger(url):
        time.sleep(seconds)  # noqa: TID251 — the very thing
