"""A small world of real processes over one database, and what may be done to them.

Every process is started here, known by its pid and gone when the world is closed. Time is jumped,
never waited for; a failure tells the seed and the last words of every process.
"""

import asyncio
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from retoma import Job, Retoma
from retoma.db import adhoc
from retoma.engine import checker, query
from retoma.engine.checker import effect_ledger
from retoma.engine.checker.effect_ledger import LedgerWriter
from retoma.engine.query import RunnerSeen
from retoma.engine.rules.states import ENDED, State
from tests import nursery, services
from tests.chaos import history, jobs
from tests.chaos.history import Accepted, History
from tests.clock import TestClock

ROOT = Path(__file__).parent.parent.parent
HOP = 40.0  # seconds: less than a lease, so whoever beats in between stays alive
LOOK = 0.03
PATIENCE = 40.0  # seconds in which nothing moves; a slow machine has as long as it needs
MOVED = adhoc(
    "SELECT count(*), sum(seq), sum(epoch), (SELECT count(*) FROM runners WHERE state <> 'alive'),"
    " (SELECT count(*) FROM runners) FROM jobs"
)
LAST_WORDS = 1_500  # characters


@dataclass(slots=True)
class Process:
    """A program of ours."""

    name: str
    popen: "subprocess.Popen[bytes]"
    log: Path

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def running(self) -> bool:
        return self.popen.poll() is None

    def send(self, sign: signal.Signals) -> None:
        self.popen.send_signal(sign)

    def kill(self) -> None:
        """As the kernel does when memory is short; reaped at once."""
        self.popen.kill()
        self.popen.wait()


@dataclass(slots=True)
class World:
    """One database, its clock, a client, and the processes of one test."""

    url: str
    folder: Path
    clock: TestClock
    seed: int
    rng: random.Random = field(init=False)
    app: Retoma = field(init=False)
    told: LedgerWriter = field(init=False)
    processes: list[Process] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.app = jobs.build(self.url, self.folder)
        self.told = LedgerWriter(self.folder)

    async def __aenter__(self) -> "World":
        await self.app.upgrade()
        self.clock.jump(
            0
        )  # on PostgreSQL: the schema is there now, and gets the clock of tests
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        words = self.last_words()
        for process in self.processes:
            process.kill()
        await self.app.close()
        if error is not None:
            error.add_note(
                f"seed {self.seed} (RETOMA_SEED={self.seed} tries it again)\n{words}"
            )

    # — processes —

    def start_runner(self, name: str = "runner", *, crash: str = "", **knobs: Any) -> Process:
        """`crash`: where and how it is to die, as RETOMA_CRASHPOINT says it."""
        told = {"name": name, "tick": 1.0, **knobs}
        armed = {"RETOMA_CRASHPOINT": crash} if crash else None
        return self.start(name, "tests.chaos.run_runner", told, armed)

    def start_submitter(self, name: str, **told: Any) -> Process:
        return self.start(name, "tests.chaos.run_submits", told)

    def start(
        self,
        name: str,
        module: str,
        told: dict[str, Any],
        environment: dict[str, str] | None = None,
        inside: str | None = None,
    ) -> Process:
        """`inside`: a process in whose namespaces it is to live."""
        program = [sys.executable, "-m", module, json.dumps(told)]
        born = partial(nursery.Born, inside=inside)
        return self._begin(born, name, program, environment)

    def start_command(
        self, name: str, command: Sequence[str], environment: dict[str, str] | None = None
    ) -> Process:
        begin = partial(subprocess.Popen, preexec_fn=services.die_with_parent())
        return self._begin(begin, name, command, environment)

    def _begin(
        self,
        begin: Callable[..., Any],
        name: str,
        command: Sequence[str],
        environment: dict[str, str] | None,
    ) -> Process:
        path = self.folder / f"{len(self.processes)}-{name}.log"
        with path.open("wb") as log:
            popen = begin(
                command,
                cwd=ROOT,
                env=os.environ | self.environment | (environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        process = Process(name, popen, path)
        self.processes.append(process)
        return process

    @property
    def environment(self) -> dict[str, str]:
        return {
            jobs.URL: self.url,
            jobs.FOLDER: str(self.folder),
            **self.clock.environment,
        }

    def last_words(self) -> str:
        said = ((each, each.log.read_text(errors="replace")) for each in self.processes[-4:])
        return "\n".join(
            f"— {each.name} {each.pid}, exit {each.popen.poll()}: {text[-LAST_WORDS:]}"
            for each, text in said
        )

    async def freeze(self, process: Process) -> None:
        """Stop it with SIGSTOP, but not in the middle of a transaction: its locks would stop all."""

        async def stopped_outside() -> bool:
            process.send(signal.SIGSTOP)
            await asyncio.sleep(LOOK)  # what the others are at ends meanwhile
            if not await asyncio.to_thread(somebody_writes, self.url):
                return True
            process.send(signal.SIGCONT)
            return False

        await self.eventually(stopped_outside, f"{process.name} is outside a transaction")

    def kill(self, process: Process) -> None:
        """With -9, and told: stopped first, so that all it ever did lies before."""
        process.send(signal.SIGSTOP)
        self.told.death(process.pid)
        process.kill()

    async def booted(self, *processes: Process) -> None:
        """Return when each of them has a living boot."""
        wanted = {process.pid for process in processes}

        async def alive() -> bool:
            for process in processes:
                assert process.running, f"{process.name} ended with {process.popen.poll()}"
            return wanted <= {seen.pid for seen in await self.living()}

        await self.eventually(alive, "the runners have booted")

    async def living(self) -> list[RunnerSeen]:
        return [each for each in await self.app.runners.list() if each.state == "alive"]

    async def boots_of(self, process: Process) -> list[RunnerSeen]:
        return [each for each in await self.app.runners.list() if each.pid == process.pid]

    # — jobs —

    async def submit(
        self, kind: str, payload: Any, *, key: str | None = None, delay: float = 0.0
    ) -> Job:
        """Submit, and remember what we were told."""
        job = await self.app.submit(kind, payload, key=key, delay=delay or None)
        self.told.accepted(Accepted(job.id, payload, key, delay))
        return job

    async def submit_all(self, kind: str, payloads: Iterable[Any]) -> list[int]:
        return [(await self.submit(kind, payload)).id for payload in payloads]

    def open_gate(self, name: str) -> None:
        (self.folder / name).touch()

    async def wait_held(self, ids: Iterable[int], *, epoch: int = 1) -> None:
        """Return when the story of each of them is at work under that epoch or a later one."""
        wanted = set(ids)

        async def at_work() -> bool:
            return wanted <= {e.job for e in self.effects() if e.epoch >= epoch}

        await self.eventually(at_work, f"{len(wanted)} jobs are at work at epoch {epoch}")

    async def wait_ended(self) -> None:
        async def ended() -> bool:
            return await self.count_open() == 0

        await self.eventually(ended, "every job has ended")

    async def count_open(self) -> int:
        counts = await self.app.insights.counts()
        return sum(n for state, n in counts.items() if state not in ENDED)

    async def states(self) -> dict[int, State]:
        rows = await history.read_rows(await self.app.database())
        return {job.id: job.state for job in rows.jobs}

    async def limits(self) -> list[query.LimitSeen]:
        found: list[query.LimitSeen] = []
        while page := await self.app.limits.list(
            after=found[-1].key if found else "", limit=200
        ):
            found += page
        return found

    def effects(self) -> list[history.Effect]:
        return effect_ledger.effects(self.folder)

    # — time —

    async def now(self) -> datetime:
        database = await self.app.database()
        [at] = await database.read(lambda tx: tx.all(NOW, into=datetime))
        return at

    async def travel(self, seconds: float, *, alive: Iterable[Process] = ()) -> None:
        """Everybody's time is later. Whoever is to stay alive beats before his lease is over."""
        wanted = {process.pid for process in alive}
        while seconds > 0:
            hop = min(HOP, seconds)
            seconds -= hop
            landed = await self.now() + timedelta(seconds=hop)
            self.clock.jump(hop)
            await self._until_beaten(wanted, landed)

    async def _until_beaten(self, pids: set[int], landed: datetime) -> None:
        async def beaten() -> bool:
            await self.ring()  # a pulse that waits by the old time looks at the new one
            beats = {seen.pid for seen in await self.living() if seen.beat_at >= landed}
            return pids <= beats

        await self.eventually(beaten, f"{len(pids)} runners have beaten after a jump")

    async def ring(self) -> None:
        database = await self.app.database()

        def ring(tx: Any) -> None:
            tx.one(NOW)
            tx.ring("look")

        await database.write(ring, verb="ring")

    async def eventually(self, holds: Callable[[], Awaitable[bool]], what: str) -> None:
        """Return when it holds; fail by name when nothing of this world has moved for too long."""
        loop = asyncio.get_running_loop()
        until, moved = loop.time() + PATIENCE, None
        while not await holds():
            if loop.time() >= until:
                before, moved = moved, await self._moved()
                assert moved != before, (
                    f"nothing has moved for {PATIENCE} s, and not yet: {what}"
                )
                until = loop.time() + PATIENCE
            await asyncio.sleep(LOOK)  # other processes have no bell for us

    async def _moved(self) -> tuple[object, ...]:
        """What is another whenever a job or a runner got on: heartbeats alone are not progress."""
        rows: list[Any] = []
        with suppress(Exception):  # the database is away: what was written beside it must do
            database = await self.app.database()
            rows = await database.read(lambda tx: tx.all(MOVED))
        told = {file.name: file.stat().st_size for file in self.folder.glob("*.jsonl")}
        return (rows, told, [process.running for process in self.processes])

    # — the verdict —

    async def history(self, *, finished: bool = True) -> History:
        rows = await history.read_rows(await self.app.database())
        return History(
            jobs=rows.jobs,
            events=rows.events,
            attempts=rows.attempts,
            steps=rows.steps,
            counts=rows.counts,
            effects=self.effects(),
            accepted=effect_ledger.accepted(self.folder),
            retries={kind.name: kind.retry for kind in self.app.kinds},
            caps={limit.key: limit.cap for limit in await self.limits()},
            deaths=effect_ledger.deaths(self.folder),
            finished=finished,
        )

    async def verdict(self, *, finished: bool = True) -> History:
        """The whole history, once nothing in it is impossible."""
        found = await self.history(finished=finished)
        database, told = await self.app.database(), effect_ledger.read_ledger(self.folder)
        impossible = await database.read(lambda tx: checker.check(tx, told))
        wrong = history.problems(found)
        wrong += [f"{each.rule}: {each.subject}: {each.found}" for each in impossible]
        assert not wrong, f"{len(wrong)} problems: " + "\n".join(wrong[:20])
        return found


def somebody_writes(url: str) -> bool:
    """Whether a lock is held that only one who was stopped can still hold."""
    if url.startswith("sqlite:"):
        return turn_is_taken(Path(url.removeprefix("sqlite:///")))
    with psycopg.connect(url) as connection:
        return connection.execute(OPEN_TRANSACTION, [LOOK]).fetchone() is not None


def turn_is_taken(path: Path) -> bool:
    """Whether a process is at its turn to write to this SQLite file."""
    with Path(f"{path}-turn").open("ab") as turn:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


NOW = adhoc("SELECT (SELECT clock())")
OPEN_TRANSACTION = (
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
    " AND state LIKE 'idle in transaction%%'"
    " AND state_change < clock_timestamp() - %s * interval '1 second' / 2"
)
