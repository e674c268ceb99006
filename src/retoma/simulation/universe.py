"""One universe: hosts that run an app's jobs on one database, one virtual clock and one seed."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from retoma.codec import decode, encode
from retoma.db import Away, Busy, Database, Full, ReplyLost
from retoma.db.simulated import SimulatedDatabase, SimulatedFile
from retoma.engine.heartbeat import Heartbeat, HeartbeatThread
from retoma.engine.isolate import NO_LIMITS, ChildDied, Isolate, Limits
from retoma.engine.job import Held
from retoma.engine.kind import Kinds
from retoma.engine.ports import Clock, Ids, Process, Processes
from retoma.engine.runner import House
from retoma.library import Retoma
from retoma.simulation.faults import Chances, Faults
from retoma.simulation.loop import Host, SimulatedLoop, Thread, new_loop

START = 1_750_000_000.0  # seconds since 1970: when every universe begins
LEASE, BEAT = 12.0, 2.0  # seconds: a fifth of the usual, so that more happens in less time
QUICK = 0.002  # seconds that a call takes on average
SLOW = 20.0  # at most, where it is slow: longer than a lease
FULL_FOR = 4.0  # seconds that a disk stays full, on average
HELD_FOR = 6.0
RESTART = 2.0
MACHINES = 2  # a runner sees at once that a process of its own machine is gone
SETTLE = 4 * 3600.0  # seconds of virtual time in which all must end once nothing goes wrong


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened, for whoever reads the trace of a universe."""

    at: float
    host: str
    what: str

    def __str__(self) -> str:
        return f"{self.at:10.3f}  {self.host:<10} {self.what}"


class SimulatedClock(Clock):
    """The loop's virtual time."""

    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__()
        self._loop = loop

    def now(self) -> float:
        return self._loop.time()

    def wall(self) -> float:
        return START + self._loop.time()


class SimulatedIds(Ids):
    """Names that a seed decides."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def new(self) -> str:
        return f"{self._rng.getrandbits(128):032x}"

    def unguessable(self, size: int) -> bytes:
        return self._rng.randbytes(size)


class Machine(Processes):
    """Knows the hosts of a universe as processes of one machine."""

    def __init__(self) -> None:
        self._hosts: dict[int, Host] = {}

    def add(self, host: Host) -> "MyProcess":
        self._hosts[host.pid] = host
        return MyProcess(self, host)

    def gone(self, process: Process) -> bool:
        host = self._hosts.get(process.pid)
        return host is None or host.dead


class MyProcess(Processes):
    """The machine as one of its processes sees it."""

    def __init__(self, machine: Machine, host: Host) -> None:
        self._machine = machine
        self._host = host

    def this(self, host: str = "") -> Process:
        return Process(host or f"machine{self._host.pid % MACHINES}", self._host.pid, "0")

    def gone(self, process: Process) -> bool:
        return self._machine.gone(process)


class SimulatedIsolate(Isolate):
    """Runs sync steps here; now and then the child process dies instead."""

    def __init__(self, universe: "Universe") -> None:
        super().__init__()
        self._universe = universe

    async def in_child(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        *,
        owner: Held | None = None,  # noqa: ARG002 — nobody looks for its child here
        limits: Limits = NO_LIMITS,  # noqa: ARG002 — nothing runs long
    ) -> str:
        await self._universe.pass_time()
        if self._universe.chances.happens(self._universe.faults.child_dies):
            self._universe.note(f"child of {fn.__name__} dies")
            raise ChildDied(
                f"{fn.__name__}: its process ended", code="child_died", exit_code=-9, stack=""
            )
        text = encode(fn(*decode(encode(list(args)))))
        await self._universe.pass_time()
        return text

    async def in_thread(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        await self._universe.pass_time()
        return fn(*args)

    def close(self) -> None:
        """There are no children."""


class Ears:
    """Wake-ups that have arrived at one host, and the heartbeat that waits for them."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._topics: set[str] = set()
        self._woken = asyncio.Event()

    def hear(self, topics: set[str]) -> None:
        self._topics |= topics
        self._woken.set()

    async def wait(self, seconds: float) -> set[str]:
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()
        topics, self._topics = self._topics, set()
        return topics


class HeartbeatTask(HeartbeatThread):
    """A heartbeat in a simulated thread: `HeartbeatThread` without a thread."""

    def __init__(
        self,
        heartbeat: Heartbeat,
        database: Database,
        *,
        on_death: Callable[[BaseException], None],
        member: "Member",
    ) -> None:
        super().__init__(heartbeat, database, on_death=on_death)
        self._member = member

    def start(self) -> None:
        member = self._member
        member.universe.loop.start_on(member.heartbeat_thread, self._repeat())

    def stop(self) -> None:
        self._stopping.set()
        self.wake()

    def wake(self) -> None:
        self._member.ears.hear(set())

    async def _repeat(self) -> None:
        try:
            while not self._stopping.is_set():
                topics = await self._member.ears.wait(self._heartbeat.seconds_left())
                if self._stopping.is_set() or not self._heartbeat.run_once(topics):
                    return
        except BaseException as error:  # noqa: BLE001 — as the real one
            self._on_death(error)


class Member:
    """One host of a universe: how it reaches the database, and what wakes it."""

    def __init__(self, universe: "Universe", name: str) -> None:
        self.universe = universe
        loop = universe.loop
        self.host = loop.new_host(name)
        self.thread = loop.new_thread(self.host)
        self.heartbeat_thread = loop.new_thread(self.host)
        self.processes = universe.machine.add(self.host)
        self.ears = Ears(loop)
        self.database = SimulatedDatabase(universe.file, self)
        self.own_app = SimulatedApp(universe.app, self)
        self.lease_ends = 0.0  # by the last heartbeat that was answered
        self.running: asyncio.Task[Any] | None = None

    # — conditions of its calls —

    async def before(self, verb: str) -> None:
        universe, faults = self.universe, self.universe.faults
        await universe.pass_time()
        if universe.chances.happens(faults.slow):
            universe.note(f"{verb} is slow")
            await asyncio.sleep(universe.rng.random() * SLOW)
        await self._harm(f"before {verb}")
        self.now(verb)

    def now(self, verb: str) -> None:
        universe, faults = self.universe, self.universe.faults
        if universe.chances.happens(faults.unreachable):
            universe.note(f"{verb} does not reach the database")
            raise Away(f"{verb}: not reachable")
        if verb != "read" and universe.chances.happens(faults.busy):
            universe.note(f"{verb} finds the database busy")
            raise Busy(f"{verb}: busy")
        if verb not in ("read", "beat") and universe.disk_is_full():
            raise Full(f"{verb}: no room")
        if verb in ("boot", "beat"):
            self.lease_ends = universe.loop.time() + LEASE

    def valid(self) -> bool:
        """Whether its lease may still hold."""
        return self.universe.loop.time() < self.lease_ends

    async def after(self, verb: str) -> None:
        universe = self.universe
        if verb in ("claim", "tick"):
            universe.wake_the_dead()
        await self._harm(f"after {verb}")
        if verb != "read" and universe.chances.happens(universe.faults.answer_lost):
            universe.note(f"{verb} is committed and its answer lost")
            raise ReplyLost(f"{verb}: the answer was lost")
        await universe.pass_time()

    async def _harm(self, where: str) -> None:
        """Kill or stop this host at the worst moment: with a call on its way."""
        universe, faults = self.universe, self.universe.faults
        if self.running is None:
            return
        if universe.chances.happens(faults.kill_in_call):
            universe.note(f"is killed {where}")
            universe.end(self)
            await asyncio.Future()  # nobody goes on from here
        if universe.chances.happens(faults.stop_in_call):
            universe.note(f"is stopped {where}")
            universe.stop(self)
            await asyncio.sleep(0)

    def notify(self, topics: set[str]) -> None:
        if topics:
            self.universe.deliver(topics)

    def wake(self) -> None:
        self.ears.hear(set())


class SimulatedApp(Retoma):
    """The app of one host: what the user registered, on the universe's database and clock."""

    def __init__(self, app: Retoma, member: Member) -> None:
        universe = member.universe
        super().__init__(
            "sqlite:///simulated.db",
            clock=SimulatedClock(universe.loop),
            ids=SimulatedIds(universe.rng),
            rng=universe.rng,
            timezone=app.timezone,
        )
        self._member = member
        self.register_all_of(app)
        self._ready = True  # the file has the schema

    def _opened(self) -> Database:
        if self._database is None:
            self._use(self._member.database)
        return self._member.database

    async def _house(self, kinds: Kinds, knobs: Any) -> House:
        member = self._member
        return replace(
            await super()._house(kinds, knobs),
            processes=member.processes,
            new_isolate=lambda: SimulatedIsolate(member.universe),
            new_heartbeat_thread=lambda *args, **how: HeartbeatTask(
                *args, **how, member=member
            ),
        )


class Universe:
    """Hosts, a database, a clock and what goes wrong, all of it decided by `seed`."""

    def __init__(
        self,
        app: Retoma,
        seed: int | str,
        file: SimulatedFile,
        *,
        faults: Faults | None = None,
        only: frozenset[int] | None = None,
        knobs: dict[str, Any] | None = None,
    ) -> None:
        self.seed = seed
        self.app = app
        self.rng = Random(f"{seed}/world")
        self.loop = new_loop(Random(f"{seed}/order"))
        self.faults = Faults.draw(Random(f"{seed}/faults")) if faults is None else faults
        self.chances = Chances(Random(f"{seed}/chances"), only)
        self.file = file
        file.begin_again(lambda: START + self.loop.time())
        self.machine = Machine()
        self.members: list[Member] = []
        self.trace: list[Line] = []
        self._knobs = {
            "slots": 4,
            "loop_limit": 0.0,
            "lease": LEASE,
            "beat": BEAT,
            **(knobs or {}),
        }
        self._full_until = -1.0
        self._names = 0

    def digest(self) -> str:
        """The same for the same seed: what happened, in a few characters."""
        return hashlib.sha256("\n".join(map(str, self.trace)).encode()).hexdigest()[:16]

    def note(self, what: str) -> None:
        name = self.loop.current_thread().host.name
        self.trace.append(Line(self.loop.time(), name, what))

    async def pass_time(self) -> None:
        """Let whoever is next go on; usually some milliseconds pass."""
        await asyncio.sleep(self.rng.expovariate(1 / QUICK) if self.rng.random() < 0.8 else 0)

    def disk_is_full(self) -> bool:
        now = self.loop.time()
        if now >= self._full_until and self.chances.happens(self.faults.full):
            self._full_until = now + self.rng.expovariate(1 / FULL_FOR)
            self.note(f"the disk is full until {self._full_until:.1f}")
        return now < self._full_until

    def deliver(self, topics: set[str]) -> None:
        """Wake-ups arrive a little later, in any order, or not at all."""
        for member in self.members:
            if member.host.dead or self.chances.happens(self.faults.deaf):
                continue
            delay = self.rng.expovariate(1 / QUICK)
            context = self.loop.context_of(member.heartbeat_thread)
            self.loop.call_later(delay, member.ears.hear, set(topics), context=context)

    # — hosts —

    def new_member(self, name: str) -> Member:
        member = Member(self, name)
        self.members.append(member)
        return member

    def start_runner(self) -> Member:
        self._names += 1
        member = self.new_member(f"runner{self._names}")
        self.note(f"starts {member.host.name}")
        member.running = self.loop.start_on(member.thread, self._run(member))
        return member

    async def _run(self, member: Member) -> None:
        try:
            await member.own_app.run(**self._knobs)
        except Exception as error:  # noqa: BLE001 — as a process that ends with a traceback
            self.note(f"ends: {type(error).__name__}: {error}")
        else:
            self.note("leaves")
        self.end(member)

    def end(self, member: Member) -> None:
        self.loop.kill(member.host)
        self.members.remove(member)

    def kill(self, member: Member) -> None:
        self.note(f"kills {member.host.name}")
        self.end(member)

    def stop(self, member: Member) -> None:
        """Stop a host, and continue it after a while, or soon after others have claimed what it held."""
        member.host.stopped = True
        delay = LEASE * (0.3 + 2.0 * self.rng.random())
        self.loop.call_later(delay, self._go_on, member, context=self.loop.outside)

    def wake_the_dead(self) -> None:
        """Continue hosts that were stopped for longer than their lease, while another runs their jobs."""
        for member in self.members:
            if member.host.stopped and not member.valid() and self.rng.random() < 0.5:
                delay = self.rng.random()
                self.loop.call_later(delay, self._go_on, member, context=self.loop.outside)

    def _go_on(self, member: Member) -> None:
        if member.host.stopped and not member.host.dead:
            self.note(f"continues {member.host.name}")
            member.host.stopped = False

    @property
    def runners(self) -> list[Member]:
        return [member for member in self.members if member.running is not None]

    # — what goes wrong by itself —

    async def trouble(self, runners: int) -> None:
        """Kill, stop, hold and restart runners until the span is over; then leave all of them alone."""
        until = self.loop.time() + self.faults.span
        faults = self.faults
        ways: list[tuple[float, Callable[[Member], Awaitable[None] | None]]] = [
            (faults.kill_every, self.kill),
            (faults.stop_every, self._stop_for_a_while),
            (faults.hold_every, self._hold_for_a_while),
            (faults.leave_every, self.ask_to_leave),
        ]
        tasks = [
            self.loop.create_task(self._again_and_again(every, way, until))
            for every, way in ways
            if every
        ]
        while self.loop.time() < until:
            await asyncio.sleep(self.rng.random() * RESTART)
            while len(self.runners) < runners:
                self.start_runner()
        await asyncio.gather(*tasks)
        self.heal(runners)

    def heal(self, runners: int) -> None:
        """From here on nothing goes wrong any more."""
        if self.faults.span:
            self.note("nothing goes wrong any more")
        self.faults = Faults(span=0.0)
        self._full_until = -1.0
        while len(self.runners) < runners:
            self.start_runner()

    async def _again_and_again(
        self,
        every: float,
        way: Callable[[Member], Awaitable[None] | None],
        until: float,
    ) -> None:
        while True:
            await asyncio.sleep(self.rng.expovariate(1 / every))
            if self.loop.time() >= until:
                return
            runners = self.runners
            if runners and self.chances.happens(1.0):
                done = way(runners[int(self.rng.random() * len(runners))])
                if done is not None:
                    self.loop.create_task(_wait_for(done))

    def _stop_for_a_while(self, member: Member) -> None:
        self.note(f"stops {member.host.name}")
        self.stop(member)

    async def _hold_for_a_while(self, member: Member) -> None:
        self.note(f"holds the loop of {member.host.name}")
        member.thread.stopped = True
        await asyncio.sleep(self.rng.random() * HELD_FOR)
        member.thread.stopped = False

    def ask_to_leave(self, member: Member) -> None:
        self.note(f"asks {member.host.name} to leave")
        context = self.loop.context_of(member.thread)
        self.loop.call_soon(member.own_app.stop, context=context)


async def _wait_for(awaitable: Awaitable[None]) -> None:
    await awaitable


def make_file(app: Retoma) -> SimulatedFile:
    """A file with the schema of the engine and of the app's applications, in which universes begin."""
    file = SimulatedFile()
    universe = Universe(app, "schema", file, faults=Faults(span=0.0))
    member = universe.new_member("schema")
    universe.loop.run_until_complete(member.own_app.upgrade())
    universe.loop.close()
    file.keep()
    return file


__all__ = ["Line", "Member", "Thread", "Universe", "make_file"]
