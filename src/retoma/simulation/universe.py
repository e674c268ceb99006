"""One universe: hosts that run an app's jobs on one database, one virtual clock and one seed."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from retoma.codec import decode, encode
from retoma.db import Away, Busy, Database, Full, ReplyLost
from retoma.db.simulated import Content, SimulatedDatabase, SimulatedFile
from retoma.engine.handlers.kinds import Kinds
from retoma.engine.isolation.isolate import NO_LIMITS, ChildDied, Isolate, Limits
from retoma.engine.ops.loop_watchdog import HeldLoops, LoopWatch
from retoma.engine.ports import Clock, Ids, Process, Processes
from retoma.engine.rules.job import Held
from retoma.engine.run.heartbeat import Heartbeat, HeartbeatThread
from retoma.engine.run.runner import RunnerParts
from retoma.library import Retoma
from retoma.simulation.faults import NONE, Chances, Fault, Faults
from retoma.simulation.loop import Host, SimulatedLoop, Thread, new_loop

START = 1_750_000_000.0  # seconds since 1970: when every universe begins
LEASE, BEAT = 12.0, 2.0  # seconds: a fifth of the usual, so that more happens in less time
QUICK = 0.002  # seconds that a call takes on average
SLOW = 20.0  # at most, where it is slow: longer than a lease
FULL_FOR = 4.0  # seconds that a disk stays full, on average
LOOP_LIMIT = 6.0  # seconds: half a lease, as usual
HELD_FOR = 9.0  # seconds that a loop is held, at most: some longer than their limit
RESTART = 2.0
TROUBLE, PAUSE = 30.0, 10.0  # seconds of faults, and without any, at most: one after the other
MACHINES = 2  # a runner sees at once that a process of its own machine is gone


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
    """Knows the hosts of a universe as processes of one machine, and what they have left."""

    def __init__(self) -> None:
        self._hosts: dict[int, Host] = {}
        self.stacks: dict[str, str] = {}  # by runner instance

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


class SimulatedWatch(LoopWatch):
    """Says how long the loop of a host may be held; the universe ends one that is held for longer."""

    def __init__(self, member: "Member", boot: str, limit: float) -> None:
        super().__init__(boot, limit)
        self._member = member

    def start(self) -> None:
        if self._limit:
            self._member.watched = self._boot, self._limit

    def stop(self) -> None:
        self._member.watched = None


class SimulatedHeldLoops(HeldLoops):
    """The held loops of a universe: no timer of a process, no file."""

    def __init__(self, member: "Member") -> None:
        self._member = member

    def watch(self, boot: str, limit: float) -> LoopWatch:
        return SimulatedWatch(self._member, boot, limit)

    def stacks_of(self, boot: str) -> str:
        return self._member.universe.machine.stacks.get(boot, "")

    def forget(self, boot: str) -> None:
        self._member.universe.machine.stacks.pop(boot, None)


class SimulatedIsolate(Isolate):
    """Runs sync steps here; now and then the child process dies instead."""

    def __init__(self, member: "Member") -> None:
        super().__init__()
        self._member = member

    async def in_child(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        *,
        owner: Held | None = None,  # noqa: ARG002 — nobody looks for its child here
        limits: Limits = NO_LIMITS,  # noqa: ARG002 — nothing runs long
        confined: bool = False,  # noqa: ARG002 — nobody is a stranger
    ) -> str:
        await self._member.pass_time()
        if self._member.suffers("child_dies"):
            self._member.universe.note(f"child of {fn.__name__} dies")
            raise ChildDied(
                f"{fn.__name__}: its process ended", code="child_died", exit_code=-9, stack=""
            )
        text = encode(fn(*decode(encode(list(args)))))
        await self._member.pass_time()
        return text

    async def in_thread(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        await self._member.pass_time()
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
        alarm = self._loop.call_later(max(seconds, 0.0), self._woken.set)
        try:
            await self._woken.wait()
        finally:
            alarm.cancel()
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
        self.rng = Random(f"{universe.seed}/{name}")
        self.thread = loop.new_thread(self.host)
        self.heartbeat_thread = loop.new_thread(self.host)
        self.processes = universe.machine.add(self.host)
        self.ears = Ears(loop)
        self.database = SimulatedDatabase(universe.file, self)
        self.own_app = SimulatedApp(universe.app, self)
        self.lease_ends = 0.0  # by the last heartbeat that was sent
        self.watched: tuple[str, float] | None = None  # its instance, and its loop's limit
        self.running: asyncio.Task[Any] | None = None
        self.leaving = False

    def suffers(self, kind: str) -> bool:
        """Whether a fault of this kind happens here, now."""
        universe = self.universe
        if universe.faults is NONE:
            return False
        chance = getattr(universe.faults, kind)
        return bool(chance) and universe.chances.happens(self.host.name, kind, chance)

    async def pass_time(self) -> None:
        """Let whoever is next go on; usually some milliseconds pass."""
        rng = self.rng
        if rng.random() < 0.8:
            await self.universe.loop.pause(rng.expovariate(1 / QUICK))
        else:
            await asyncio.sleep(0)

    # — conditions of its calls —

    async def before(self, verb: str) -> None:
        await self.pass_time()
        if self.suffers("slow"):
            self.universe.note(f"{verb} is slow")
            await asyncio.sleep(self.rng.random() * SLOW)
        await self._harm("before", verb)
        self.now(verb)

    def now(self, verb: str) -> None:
        universe = self.universe
        if self.suffers("unreachable"):
            universe.note(f"{verb} does not reach the database")
            raise Away(f"{verb}: not reachable")
        if verb != "read" and self.suffers("busy"):
            universe.note(f"{verb} finds the database busy")
            raise Busy(f"{verb}: busy")
        if verb not in ("read", "beat") and universe.disk_is_full(self):
            raise Full(f"{verb}: no room")
        if verb in ("boot", "beat"):
            self.lease_ends = universe.loop.time() + LEASE

    def valid(self) -> bool:
        """Whether its lease may still hold."""
        return self.universe.loop.time() < self.lease_ends

    async def after(self, verb: str) -> None:
        if verb in ("claim", "tick"):
            self.universe.wake_the_dead()
        await self._harm("after", verb)
        if verb != "read":
            self.answered(verb)
        await self.pass_time()

    def answered(self, verb: str) -> None:
        if self.suffers("answer_lost"):
            self.universe.note(f"{verb} is committed and its answer lost")
            raise ReplyLost(f"{verb}: the answer was lost")

    async def _harm(self, when: str, verb: str) -> None:
        """Kill or stop this host at the worst moment: with a call on its way."""
        universe = self.universe
        if self.running is None or universe.faults is NONE:
            return
        if self.suffers("kill_in_call"):
            universe.note(f"is killed {when} {verb}")
            universe.end(self)
            await asyncio.Future()  # nobody goes on from here
        if self.suffers("stop_in_call"):
            universe.note(f"is stopped {when} {verb}")
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
            ids=SimulatedIds(member.rng),
            rng=member.rng,
            timezone=app.timezone,
        )
        self._member = member
        self.register_all_of(app)
        self.connection.use(member.database, ready=True)  # the file has the schema

    async def _runner_parts(self, kinds: Kinds, options: Any) -> RunnerParts:
        member = self._member
        return replace(
            await super()._runner_parts(kinds, options),
            processes=member.processes,
            held_loops=SimulatedHeldLoops(member),
            new_isolate=lambda: SimulatedIsolate(member),
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
        file: Content,
        *,
        faults: Faults | None = None,
        only: frozenset[Fault] | None = None,
        knobs: dict[str, Any] | None = None,
    ) -> None:
        self.seed = seed
        self.app = app
        self.rng = Random(f"{seed}/world")
        self.loop = new_loop(Random(f"{seed}/order"))
        self.planned = Faults.draw(Random(f"{seed}/faults")) if faults is None else faults
        self.faults = NONE  # what goes wrong now
        self.chances = Chances(seed, only)
        self.file = file
        file.begin_again(lambda: START + self.loop.time())
        self.machine = Machine()
        self.members: list[Member] = []
        self.trace: list[Line] = []
        self.over = False  # all has ended, and the runners are asked to leave
        self.zombies = 0  # hosts that went on after their lease had ended
        self._knobs = {
            "slots": 4,
            "loop_limit": LOOP_LIMIT,
            "lease": LEASE,
            "beat": BEAT,
            **(knobs or {}),
        }
        self._full_until = -1.0
        self._names = 0

    def note(self, what: str) -> None:
        name = self.loop.current_thread().host.name
        self.trace.append(Line(self.loop.time(), name, what))

    def disk_is_full(self, member: Member) -> bool:
        now = self.loop.time()
        if now >= self._full_until and member.suffers("full"):
            self._full_until = now + self.rng.expovariate(1 / FULL_FOR)
            self.note(f"the disk is full until {self._full_until:.1f}")
        return now < self._full_until

    def deliver(self, topics: set[str]) -> None:
        """Wake-ups arrive a little later, in any order, or not at all."""
        for member in self.members:
            if member.running is None:
                continue
            if member.suffers("deaf"):
                self.note(f"{member.host.name} does not hear of it")
                continue
            delay = member.rng.expovariate(1 / QUICK)
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
            if not self.over:
                self.note("leaves")
        self._remove(member)

    def end(self, member: Member) -> None:
        """Kill its host."""
        self.loop.ignore_errors_of(member.host)
        self._remove(member)

    def _remove(self, member: Member) -> None:
        self.loop.kill(member.host)
        self.members.remove(member)

    def stop(self, member: Member) -> None:
        """Stop a host, and continue it after a while, or soon after others have claimed what it held."""
        member.host.stop()
        delay = LEASE * (0.3 + 2.0 * member.rng.random())
        self.loop.call_later(delay, self._go_on, member, context=self.loop.outside)

    def wake_the_dead(self) -> None:
        """Continue hosts that were stopped for longer than their lease, while another runs their jobs."""
        for member in self.members:
            if member.host.stopped and not member.valid() and member.rng.random() < 0.5:
                delay = member.rng.random()
                self.loop.call_later(delay, self._go_on, member, context=self.loop.outside)

    def _go_on(self, member: Member) -> None:
        if member.host.stopped and not member.host.dead:
            late = not member.valid()
            self.zombies += late
            self.note(f"continues {member.host.name}{', whose lease is over' if late else ''}")
            member.host.go_on()

    @property
    def runners(self) -> list[Member]:
        return [member for member in self.members if member.running is not None]

    # — what goes wrong by itself —

    async def trouble(self) -> None:
        """Things go wrong in spans, with pauses between them; after the last one nothing does any more."""
        until = self.planned.span
        while (left := until - self.loop.time()) > 0:
            await self._suffer(min(left, TROUBLE * (0.2 + 0.8 * self.rng.random())))
            left = until - self.loop.time()
            await asyncio.sleep(min(left, PAUSE * self.rng.random()))
        self.heal()

    async def _suffer(self, seconds: float) -> None:
        self.faults = self.planned
        ways: list[tuple[float, Callable[[], Coroutine[Any, Any, None]]]] = [
            (self.planned.kill_every, self._kill_one),
            (self.planned.stop_every, self._stop_one),
            (self.planned.hold_every, self._hold_one),
            (self.planned.leave_every, self._ask_one_to_leave),
        ]
        tasks = [self.loop.create_task(self._harm(*way)) for way in ways if way[0]]
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        self.faults = NONE

    async def _harm(self, every: float, way: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            await asyncio.sleep(self.rng.expovariate(1 / every))
            await way()

    async def keep_running(self, runners: int) -> None:
        """Start a runner in place of each that is gone, after a while."""
        while True:
            await asyncio.sleep(self.rng.random() * RESTART)
            while len(self.runners) < runners:
                self.start_runner()

    def heal(self) -> None:
        """From here on nothing goes wrong any more."""
        self.note("nothing goes wrong any more")
        self._full_until = -1.0
        for member in list(self.members):
            self._go_on(member)
            member.thread.let_go()

    def _one(self, kind: str, able: Callable[[Member], bool]) -> Member | None:
        """One of the runners to which this can happen, if it does."""
        found = [member for member in self.runners if able(member)]
        if not found:
            return None
        member = found[int(self.rng.random() * len(found))]
        return member if self.chances.happens(member.host.name, kind) else None

    async def _kill_one(self) -> None:
        member = self._one("kill", lambda _: True)
        if member is not None:
            self.note(f"kills {member.host.name}")
            self.end(member)

    async def _stop_one(self) -> None:
        member = self._one("stop", lambda each: not each.host.stopped)
        if member is not None:
            self.note(f"stops {member.host.name}")
            self.stop(member)

    async def _hold_one(self) -> None:
        """Hold a loop, as a handler does that waits without `await`; its watch may end the process."""
        member = self._one("hold", lambda each: not each.host.stopped)
        if member is None:
            return
        seconds = member.rng.random() * HELD_FOR
        self.note(f"holds the loop of {member.host.name} for {seconds:.1f} s")
        member.thread.hold()
        try:
            boot, limit = member.watched or ("", seconds)
            await asyncio.sleep(min(seconds, limit))
            if seconds > limit and member in self.members and not member.host.stopped:
                self.note(f"{member.host.name} leaves: its loop was held for {limit:g} s")
                self.machine.stacks[boot] = "where it was held"
                self.end(member)
        finally:
            member.thread.let_go()

    async def _ask_one_to_leave(self) -> None:
        member = self._one("leave", lambda each: not each.leaving)
        if member is not None:
            self.note(f"asks {member.host.name} to leave")
            self.ask_to_leave(member)

    def ask_to_leave(self, member: Member) -> None:
        member.leaving = True
        context = self.loop.context_of(member.thread)
        self.loop.call_soon(member.own_app.stop, context=context)


def make_file(app: Retoma) -> SimulatedFile:
    """A file with the schema of the engine and of the app's applications, in which universes begin."""
    file = SimulatedFile()
    lay_schema(app, file)
    return file


def lay_schema(app: Retoma, file: Content) -> None:
    """Make an empty database the beginning of every universe of this app."""
    universe = Universe(app, "schema", file, faults=NONE)
    member = universe.new_member("schema")
    universe.loop.run_until_complete(member.own_app.upgrade())
    universe.loop.close()
    file.keep()


__all__ = ["Line", "Member", "Thread", "Universe", "lay_schema", "make_file"]
