"""The fault sweep: a scenario once for every statement and every fault that applies, and the checker after each.

A cell is one scenario, one place and one fault; its name is enough to play it again.
"""

import asyncio
import logging
import secrets
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import IO, Any, LiteralString, Protocol

import apsw
import psycopg
import structlog
from psycopg import sql

from retoma import State, db
from retoma.db import Transaction, adhoc
from retoma.engine import checker
from retoma.engine.checker.effect_ledger import END, effects, read_ledger
from retoma.engine.run import runner, running_jobs
from retoma.engine.run.running_jobs import NO_ANSWER
from tests import services
from tests.databases import ENGINE_ONLY, Files, Recycled, Rooms
from tests.prove import files, progress
from tests.prove.operations import SCENARIOS
from tests.prove.places import Place
from tests.prove.play import COUNT, Play, Scenario, expectations
from tests.prove.progress import Hangs, until_done
from tests.prove.wire import ENDS_ONLY, ERRORS, GUILTY, OF_CHANGES, Fault, Wire

SPOILED = 0.05  # NO_ANSWER during a sweep
TRIES = 5  # to reach a place: what runs beside each other comes in another order now and then
# Little to read again after a crash: a restart is waited for by the scenario.
SERVER = services.FAST | {"max_wal_size": "64MB", "checkpoint_timeout": "30s"}
PROGRAMS = ("scenarios.py", "operations.py", "edges.py", "questions.py")
HOME = Path("/dev/shm") if Path("/dev/shm").is_dir() else None  # noqa: S108 — a folder of our own inside

FAILED = adhoc(
    "SELECT count(*) FROM events WHERE type = 'failed'"
    " OR type = 'buried' AND coalesce(details ->> 'reason', '') <> 'poison'"
)
JOBS = adhoc("SELECT count(*) FROM jobs")
HAS_GOODS = adhoc(
    "SELECT 1 FROM sqlite_master WHERE name = 'goods'",
    "SELECT 1 WHERE to_regclass('goods') IS NOT NULL",
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One scenario with one fault at one place."""

    database: str
    scenario: str
    place: Place
    fault: str

    def __str__(self) -> str:
        return f"{self.database}:{self.scenario}:{self.place}:{self.fault}"

    @classmethod
    def parse(cls, text: str) -> "Cell":
        database, scenario, place, fault = text.split(":")
        return cls(database, scenario, Place.parse(place), fault)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a cell."""

    cell: Cell
    hit: bool  # whether the scenario came by the place
    wrong: list[str]
    refused: list[str] = field(default_factory=list)


class Lab(Protocol):
    """One make of database, and how its statements are spoiled."""

    name: str

    def places(self, scenario: Scenario) -> list[tuple[Place, list[str]]]:
        """Every place of a scenario, each with the faults that apply."""

    def play(self, cell: Cell) -> Outcome: ...


@contextmanager
def open_lab(database: str) -> Iterator[Lab]:
    """A laboratory for one make of database; on PostgreSQL with a server of its own."""
    with ExitStack() as stack:
        if database == "sqlite":
            yield SqliteLab(stack)
        else:
            server = stack.enter_context(services.PostgresServer(SERVER))
            yield PostgresLab(server.dsn, stack, lambda: server.restart("immediate"))


def play_until_hit(lab: Lab, choice: Sequence[Cell]) -> Outcome:
    """Play one cell of several, some of them while the scenario does not reach its place."""
    for cell in islice(cycle(choice), TRIES - 1):
        outcome = lab.play(cell)
        if outcome.hit or outcome.wrong:
            return outcome
    return lab.play(choice[0])


def silence_logs() -> None:
    """What a runner says when its database goes away is no news during a sweep."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def play(
    scenario: Scenario,
    through: str,
    direct: str,
    folder: Path,
    all_well: Callable[[], None],
    *,
    guilty: bool,
) -> tuple[list[str], list[str]]:
    """Play it with the database at one address, judge it at another: what is wrong, what was refused.

    `all_well`: called before the judge comes. `guilty`: one job may fail, whose statement it was.
    """
    try:
        return asyncio.run(
            _play(scenario, Play(through, folder), direct, all_well, int(guilty))
        )
    except Exception as error:  # noqa: BLE001 — whatever it is, it is a finding
        return [_broken(error)], []


async def _play(
    scenario: Scenario, played: Play, direct: str, all_well: Callable[[], None], guilty: int
) -> tuple[list[str], list[str]]:
    wrong = []
    try:
        look = partial(progress.of_play, played, direct)
        await until_done(scenario.act(played), look, still=progress.STILL)
    except Hangs as error:
        wrong.append(f"hangs: {error}")
    except Exception as error:  # noqa: BLE001 — whatever it is, it is a finding
        wrong.append(_broken(error))
    finally:
        await played.app.close()
    all_well()
    database = db.open(direct)
    try:
        wrong += await database.read(lambda tx: _judge(tx, played, guilty))
    finally:
        await asyncio.to_thread(database.close)
    return wrong, played.refused


def _broken(error: BaseException) -> str:
    frames = [
        f"{Path(each.filename).name}:{each.lineno}"
        for each in traceback.extract_tb(error.__traceback__)
        if "retoma" in each.filename or each.filename.endswith(PROGRAMS)
    ]
    where = " < ".join(frames[:-6:-1])
    return f"broke: {type(error).__name__}: {error} ({where})"


def _judge(tx: Transaction, played: Play, guilty: int) -> list[str]:
    ledger = read_ledger(played.folder)
    left = [*checker.open_jobs(tx)]
    # What the database refuses for itself parks its job, with what it was in its evidence.
    parked = [each for each in left if str(State.PARKED) in each.found][:guilty]
    found = [*checker.check(tx, ledger), *(each for each in left if each not in parked)]
    wrong = [f"{each.rule}: {each.subject}: {each.found}" for each in found]
    rows: dict[str, int] = dict(tx.all(COUNT)) if tx.one(HAS_GOODS) else {}
    ends = Counter(
        (each.job, each.step) for each in effects(played.folder) if each.phase == END
    )
    wrong += expectations(played, rows, ends, again=played.crashes + guilty)
    [[jobs]], [[failed]] = tx.all(JOBS), tx.all(FAILED)
    if jobs != played.jobs:
        wrong.append(f"submissions: there are {jobs} jobs, {played.jobs} were submitted")
    if not played.crashes and not -len(parked) <= failed - played.failures <= guilty:
        wrong.append(f"attempts: {failed} failed, {played.failures} were told to")
    return wrong


@contextmanager
def impatient() -> Iterator[None]:
    """Inside, a runner that gets no answer asks again soon."""
    modules: list[Any] = [runner, running_jobs]
    for each in modules:
        each.NO_ANSWER = SPOILED
    try:
        yield
    finally:
        for each in modules:
            each.NO_ANSWER = NO_ANSWER


# — PostgreSQL —


class PostgresLab:
    """Statements are spoiled on their way to the server."""

    name = "postgres"

    def __init__(self, server: str, stack: ExitStack, restart: Any = None) -> None:
        self._server = server
        self._folder = stack.enter_context(_folder())
        self._restartable = restart is not None
        self._wire = stack.enter_context(Wire(server, restart))
        self._databases = {rooms: _Recycling(server, rooms) for rooms in (ENGINE_ONLY, ())}
        for each in self._databases.values():
            stack.callback(each.close)
        stack.enter_context(impatient())

    def places(self, scenario: Scenario) -> list[tuple[Place, list[str]]]:
        self._once(scenario, None, None)
        return [(place, self._faults(place)) for place in dict.fromkeys(self._wire.places)]

    def _faults(self, place: Place) -> list[str]:
        ends = place in self._wire.ends
        faults = [
            each
            for each in (Fault.CUT_BEFORE, Fault.CUT_AFTER, *ERRORS, Fault.EMFILE)
            if each is not Fault.EMFILE or place.n == 0
            if each not in OF_CHANGES or place in self._wire.changes
        ]
        faults += ENDS_ONLY if ends else ()
        if self._restartable and place.n == 0:
            faults.append(Fault.RESTART)
        return [each.name.lower() for each in faults]

    def play(self, cell: Cell) -> Outcome:
        fault = Fault[cell.fault.upper()]
        wrong, refused = self._once(SCENARIOS[cell.scenario], cell.place, fault)
        return Outcome(cell, self._wire.hit, wrong, refused)

    def _once(
        self, scenario: Scenario, place: Place | None, fault: Fault | None
    ) -> tuple[list[str], list[str]]:
        direct = self._databases[ENGINE_ONLY if scenario.migrated else ()].hand_over()
        self._wire.arm(place, fault, "/" + direct.rpartition("/")[2])
        folder = _empty(self._folder)
        try:
            return play(
                scenario,
                self._wire.url,
                direct,
                folder,
                self._wire.all_well,
                guilty=fault in GUILTY,
            )
        finally:
            self._wire.all_well()
            self._wire.cut_all()


class _Recycling:
    """A database that is cleaned between cells, and found again after a restart of the server."""

    def __init__(self, server: str, rooms: Rooms) -> None:
        name = f"retoma_prove_{secrets.token_hex(8)}"
        self._server, self._name = server, sql.Identifier(name)
        self._admin("CREATE DATABASE {}")
        self._address = server.rpartition("/")[0] + f"/{name}"
        self._rooms = rooms
        self._recycled: Recycled | None = None
        self._connection: psycopg.Connection[Any] | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._admin("DROP DATABASE {} WITH (FORCE)")

    def _admin(self, command: LiteralString) -> None:
        with psycopg.connect(self._server, autocommit=True) as admin:
            admin.execute(sql.SQL(command).format(self._name))

    def hand_over(self) -> str:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._address, autocommit=True)
            self._recycled = Recycled(self._connection, self._address, self._rooms)
        assert self._recycled is not None
        try:
            # Else all would be made anew for a table that we know of.
            self._connection.execute("DROP TABLE IF EXISTS goods")
            return self._recycled.hand_over()
        except psycopg.OperationalError:
            self._connection.close()  # the server was restarted meanwhile
            return self.hand_over()


# — SQLite —


class SqliteLab:
    """Statements are spoiled in this process, files under it."""

    name = "sqlite"

    def __init__(self, stack: ExitStack) -> None:
        self._folder = stack.enter_context(_folder())
        self._migrated = Files(_made(self._folder / "migrated"))
        self._path = self._folder / "work.db"
        self._other = stack.enter_context(_other_process(self._path))
        self._spoiler = files.Spoiler(self._other.hold)
        vfs = files.FaultVFS(self._spoiler)
        stack.callback(vfs.unregister)
        stack.callback(files.SharedMemory(self._spoiler, vfs).close)
        apsw.connection_hooks.append(self._spoiler.watch)
        stack.callback(apsw.connection_hooks.remove, self._spoiler.watch)
        stack.enter_context(impatient())

    def places(self, scenario: Scenario) -> list[tuple[Place, list[str]]]:
        self._once(scenario, None, None)
        return [(place, self._faults(place)) for place in dict.fromkeys(self._spoiler.places)]

    def _faults(self, place: Place) -> list[str]:
        if place.lane == "file":
            operation = place.name.partition(".")[2]
            faults = files.OF_OPERATIONS.get(operation, (files.Fault.IOERR,))
        elif place.name == "BEGIN_IMMEDIATE":
            faults = (*files.OF_STATEMENTS, files.Fault.LOCKED)
        else:
            faults = files.OF_STATEMENTS
        if place.lane == "read":  # a question needs no room
            faults = tuple(each for each in faults if each is not files.Fault.FULL)
        return [each.name.lower() for each in faults]

    def play(self, cell: Cell) -> Outcome:
        fault = files.Fault[cell.fault.upper()]
        wrong, refused = self._once(SCENARIOS[cell.scenario], cell.place, fault)
        return Outcome(cell, self._spoiler.hit, wrong, refused)

    def _once(
        self, scenario: Scenario, place: Place | None, fault: files.Fault | None
    ) -> tuple[list[str], list[str]]:
        self._other.wait_until_closed()
        for each in self._folder.glob("work.db*"):
            if each.is_dir():  # where programs are woken
                shutil.rmtree(each)
            else:
                each.unlink()
        self._migrated.lay(self._path, ENGINE_ONLY if scenario.migrated else ())
        url = f"sqlite:///{self._path}"
        self._spoiler.arm(place, fault)
        guilty = fault is files.Fault.UNKNOWN
        folder = _empty(self._folder)
        return play(scenario, url, url, folder, self._spoiler.disarm, guilty=guilty)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@contextmanager
def _other_process(path: Path) -> Iterator["_OtherProcess"]:
    """Somebody else's program that takes the lock of the file when it is told to."""
    with subprocess.Popen(
        [sys.executable, "-c", LOCKER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield _OtherProcess(process.stdin, process.stdout)
        finally:
            process.stdin.close()


class _OtherProcess:
    """Takes the lock of the file for a while, and closes the file after that."""

    def __init__(self, tell: IO[str], hear: IO[str]) -> None:
        self._tell = tell
        self._hear = hear
        self._holds = False

    def hold(self, seconds: float) -> None:
        self._tell.write(f"{seconds}\n")
        self._tell.flush()
        self._hear.readline()  # it has the lock, or could not get it
        self._holds = True

    def wait_until_closed(self) -> None:
        """Whoever closes a file last deletes its log, by name: of the next file, were it there already."""
        if self._holds:
            self._hear.readline()
        self._holds = False


LOCKER = """
import sys, time
import apsw
for line in sys.stdin:
    other = apsw.Connection(sys.argv[1])
    other.set_busy_timeout(1000)
    try:
        other.execute("BEGIN IMMEDIATE")
    except apsw.Error:
        pass
    print("held", flush=True)
    time.sleep(float(line))
    other.close()
    print("closed", flush=True)
"""


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="retoma-prove-", dir=HOME) as folder:
        yield Path(folder)


def _empty(folder: Path) -> Path:
    inside = folder / "ledger"
    shutil.rmtree(inside, ignore_errors=True)
    inside.mkdir()
    return inside


__all__ = [
    "Cell",
    "Lab",
    "Outcome",
    "PostgresLab",
    "SqliteLab",
    "open_lab",
    "play_until_hit",
    "silence_logs",
]
