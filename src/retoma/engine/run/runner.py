"""A runner: claims jobs, runs them, gives them back when it must.

One boot is one life. When the database no longer counts a boot as alive, everything it holds is
stopped, nothing of it is written, and a new boot begins.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from structlog.contextvars import bound_contextvars

from retoma.db import (
    EVERYTHING,
    Away,
    Database,
    DatabaseError,
    Full,
    Lane,
    Transaction,
    crashpoint,
)
from retoma.engine import store
from retoma.engine.handlers.kinds import Kinds
from retoma.engine.isolation.isolate import Isolate
from retoma.engine.log import get_logger
from retoma.engine.ops import alerts, retention, schedules
from retoma.engine.ops.alerts import Alerts, HandOver
from retoma.engine.ops.leader_tasks import NEVER, Chore, Duties, Duty
from retoma.engine.ops.loop_watchdog import LOOP_LIMIT, HeldLoops
from retoma.engine.ops.retention import FOREVER, Keep, Retention, Watched
from retoma.engine.ops.schedules import TIMEZONE
from retoma.engine.ops.watchdog import Watchdog
from retoma.engine.ports import Clock, Ids, Processes, chance
from retoma.engine.rules import settlement
from retoma.engine.rules.duration import LONGEST
from retoma.engine.rules.errors import BadInput, LeaseLost
from retoma.engine.rules.job import Claim, Held, Memory
from retoma.engine.rules.live_settings import Declared
from retoma.engine.rules.states import State
from retoma.engine.run import filling
from retoma.engine.run.attempt import DICE, EVIDENCE, NOTHING, Attempt, Tools, Why
from retoma.engine.run.claim_cursor import ClaimRequest, Gates, QueueCursor, StartHints
from retoma.engine.run.heartbeat import BEAT, BEATS, LEASE, Heartbeat, HeartbeatThread
from retoma.engine.run.stalls import StallWatch
from retoma.engine.run.step_transaction import Effects
from retoma.engine.store import Around, Boot, Found, pauses
from retoma.engine.store.pauses import Belongs, Known
from retoma.engine.traces import Traces
from retoma.engine.writing.database_health import Trouble
from retoma.engine.writing.evidence import Keeper
from retoma.engine.writing.group_writer import WRITE, Writer
from retoma.words import say

TICK = 5.0  # seconds: everything is looked at this often, bell or no bell
LOOK = 1.0  # seconds between two looks whether a process beside us has died
GRACE = 25.0  # seconds a leaving runner lets its jobs finish; deploy tools kill after 30
PARTS = 2  # claims in which a runner fills its slots
NO_ANSWER = 1.0  # seconds until a database that did not answer is asked again
STEP_MEMORY = 256_000_000  # bytes of saved step values that are read back at a time
LET_GO = 3.0  # seconds for a story that was stopped to end; with the grace less than 30
SETTLING = (
    3  # times as long as a story may take to let go: what has ended may take to be settled
)
LAST_TRY = (
    1.5  # seconds for what could not be written for want of room; with the others less than 30
)
ABANDONED = 10  # stories and threads that did not let go: with more of them a life is worn out

log = get_logger("retoma.runner")


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """What a runner may be told. Seconds."""

    name: str = "runner"
    host: str = ""  # what its machine is called; else by its host name
    version: str = ""
    slots: int = 100
    lease: float = LEASE
    beat: float = BEAT
    tick: float = TICK
    grace: float = GRACE
    let_go: float = LET_GO
    loop_limit: float = LOOP_LIMIT  # 0: the loop may be held for ever
    stop_stalled: bool = False
    step_memory: int = STEP_MEMORY
    keep: Keep = FOREVER
    timezone: str = TIMEZONE  # whose days and months costs are counted by

    def __post_init__(self) -> None:
        problems = [what for what, well in self._checks() if not well]
        if problems:
            raise BadInput(
                say("a runner cannot run so: {problems}", problems="; ".join(problems))
            )

    def _checks(self) -> list[tuple[str, bool]]:
        return [
            (f"slots must be at least 1, not {self.slots}", self.slots >= 1),
            (f"beat must be longer than nothing, not {self.beat:g} s", self.beat > 0),
            (
                f"lease must be at least {BEATS} beats, or one late beat loses everything:"
                f" {self.lease:g} s against {self.beat:g} s",
                self.lease >= BEATS * self.beat,
            ),
            (f"tick must be longer than nothing, not {self.tick:g} s", self.tick > 0),
            (f"grace must not be negative: {self.grace:g} s", self.grace >= 0),
            (f"let_go must not be negative: {self.let_go:g} s", self.let_go >= 0),
            (f"loop_limit must not be negative: {self.loop_limit:g} s", self.loop_limit >= 0),
            *(
                (f"{name} must be at most 100 years, not {length:g} s", length <= LONGEST)
                for name, length in self._lengths()
            ),
            (
                f"step_memory must be at least 1 byte, not {self.step_memory}",
                self.step_memory > 0,
            ),
        ]

    def _lengths(self) -> list[tuple[str, float]]:
        names = ("lease", "beat", "tick", "grace", "let_go", "loop_limit")
        return [(name, getattr(self, name)) for name in names]


class Runner:
    """Runs the kinds it knows, as many jobs at a time as it has slots."""

    def __init__(self, house: "House") -> None:
        self._house = house
        self._stopping = False
        self._life: Life | None = None

    async def run(self, *, until_idle: bool = False) -> None:
        """Work until stopped, or until nothing waits any more."""
        lives = 0
        while not self._stopping:
            life = self._life = Life(self._house, until_idle=until_idle, again=lives > 0)
            lives += 1
            try:
                if await life.lived() or life.drained:
                    return
            finally:
                self._life = None

    def stop(self) -> None:
        """Claim nothing more; finish or give back what is running, then leave."""
        self._stopping = True
        if self._life is not None:
            self._life.leave()


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What every life of a runner finds."""

    database: Database
    kinds: Kinds
    knobs: Knobs
    clock: Clock = field(default_factory=Clock)
    ids: Ids = field(default_factory=Ids)
    rng: Random = field(default_factory=chance)
    keeper: Keeper = field(default_factory=Keeper)
    traces: Traces | None = None
    declared: Declared = field(default_factory=Declared)  # what people may change while it runs
    processes: Processes = field(default_factory=Processes)
    held_loops: HeldLoops = field(default_factory=HeldLoops)
    new_isolate: Callable[[], Isolate] = Isolate
    new_heartbeat_thread: Callable[..., HeartbeatThread] = HeartbeatThread


class Life:
    """One boot of a runner."""

    def __init__(self, house: House, *, until_idle: bool, again: bool = False) -> None:
        self._database = house.database
        self._knobs = house.knobs
        self._clock = house.clock
        self._kinds = house.kinds
        self._processes = house.processes
        self._held_loops = house.held_loops
        self._again = again
        self._until_idle = until_idle
        self._loop = asyncio.get_running_loop()
        # What has happened to it.
        self._leaving = self._left = self._lost = self._worn = False
        self.drained = False  # somebody wants this runner gone, not only this boot
        self._heartbeat_error: BaseException | None = (
            None  # what has ended its heartbeat thread
        )
        # What it was told to look at, and has not yet.
        self._wake = asyncio.Event()
        self._rung = self._cancels_rung = self._booted_beside = self._recall = False
        self._wake_on_free = True
        # Held while a claim is made and started: else a look at what is held takes it for unknown.
        self._claiming = asyncio.Lock()
        # What it has in hand.
        self._running: dict[Held, Attempt] = {}  # until they are settled
        self._telling: set[Held] = set()  # those whose story is still being told
        self._returning: set[Held] = set()  # broken attempts whose jobs are being given back
        self._suspect: Held | None = None
        self._abandoned: set[asyncio.Task[Any]] = set()
        self._beside: set[asyncio.Task[None]] = set()
        # How it claims. A part at a time: what was claimed is begun while the next is claimed.
        self._bite = max(self._knobs.slots // PARTS, 1)
        self._hints = StartHints(self._clock, self._database.dialect == "postgres")
        self._gates = Gates()
        self._pauses = Known()
        self._queues, self._knows = self._kinds.queues(), self._kinds.tags()
        self._cursor = QueueCursor(self._clock, self._queues)
        self._unheard = False  # of a change of pauses
        self._holds = self._kinds.holding()
        self._holding = self._kinds.holding_by_queue()
        # Who works for it.
        self._boot = self._new_boot(house)
        self._trouble = Trouble(self._boot.id, self._tell_of_trouble)
        self._writer = Writer(self._database, self._boot.id, self._clock, self._trouble)
        self._watchdog = self._new_watchdog()
        self._fixed = house.declared.fixed
        self._retention = Retention(self._knobs.keep, self._boot.id, house.keeper, self._fixed)
        self._duties = self._new_duties()
        self._isolate = house.new_isolate()
        self._loop_watch = self._held_loops.watch(self._boot.id, self._knobs.loop_limit)
        self._stalls = StallWatch(self._clock, stop=self._knobs.stop_stalled)
        self._may_stall = any(kind.stall is not None for kind in self._kinds)
        self._heartbeat = self._new_heartbeat()
        self._heartbeat_thread = house.new_heartbeat_thread(
            self._heartbeat,
            self._database,
            on_death=self._from_thread(self._end_without_heartbeat),
        )
        self._tools = self._new_tools(house)

    def _new_boot(self, house: House) -> Boot:
        return Boot(
            id=house.ids.new(),
            name=self._knobs.name,
            process=house.processes.this(self._knobs.host),
            version=self._knobs.version,
            slots=self._knobs.slots,
            knows=self._kinds.tags(),
        )

    def _new_watchdog(self) -> Watchdog:
        knobs, boot = self._knobs, self._boot
        about = (knobs.lease, knobs.timezone, self._processes, self._held_loops)
        return Watchdog(self._database, boot.id, boot.process, *about)

    def _new_duties(self) -> Duties:
        of_applications = alerts.application_chores(self._kinds)
        return Duties(
            self._database,
            self._boot.id,
            self._clock,
            chores={
                **self._chores_of(),
                **of_applications,
                Duty.RETENTION: Watched(self._retention, self._clock).chore,
            },
            first={
                **dict.fromkeys(of_applications, alerts.EVERY),
                Duty.ALERTS: alerts.EVERY,
                Duty.FILL: filling.FIRST,
                Duty.NOTIFY: alerts.HAND_OVER,
                Duty.RETENTION: retention.FIRST,
            },
            wake=self._wake.set,
        )

    def _new_heartbeat(self) -> Heartbeat:
        return Heartbeat(
            self._database,
            self._boot.id,
            self._clock,
            lease=self._knobs.lease,
            beat=self._knobs.beat,
            on_wake_up=self._from_thread(self._hear),
            on_lost=self._from_thread(self._lose),
            on_drain=self._from_thread(self._drain),
        )

    def _new_tools(self, house: House) -> Tools:
        return Tools(
            boot=self._boot.id,
            database=self._database,
            effects=self._new_effects(house),
            writer=self._writer,
            trouble=self._trouble,
            heartbeat=self._heartbeat,
            isolate=self._isolate,
            keeper=house.keeper,
            clock=self._clock,
            rng=house.rng,
            let_go=self._knobs.let_go,
            zone=self._knobs.timezone,
            keep_reuse=self._knobs.keep.reuse,
            step_memory=self._knobs.step_memory,
            look=self.look,
            story_over=self._story_over,
            ended=self._ended,
            abandoned=self._abandon,
            beside=self._run_beside,
            traces=house.traces,
        )

    def _new_effects(self, house: House) -> Effects:
        return Effects(
            house.database,
            self._boot.id,
            house.kinds,
            house.ids,
            house.clock,
            self._trouble,
            house.declared,
        )

    def _chores_of(self) -> dict[str, Chore]:
        """What this runner knows to do for the whole house."""
        chores: dict[str, Chore] = {
            Duty.ALERTS: Alerts(self._knobs.timezone, self._fixed).chore,
            Duty.FILL: filling.finish_left,
            Duty.FOLD: self._watchdog.fold_chore,
            Duty.RETENTION: self._retention.chore,
            Duty.SCHEDULE: schedules.tick,
        }
        notices = HandOver(self._kinds, self._fixed)
        if notices.wanted:
            chores[Duty.NOTIFY] = notices.chore
        return chores

    async def lived(self) -> bool:
        """Live until stopped or idle (True), or until this boot is over (False)."""
        await self._begin()
        with self._loop_watch:
            return await self._work_and_leave()

    async def _work_and_leave(self) -> bool:
        try:
            self._heartbeat_thread.start()
            log.info("runner.booted", runner=self._boot.id, name=self._boot.name)
            # Every line that a story writes says on which runner it ran.
            with bound_contextvars(runner=self._boot.id):
                await self._work()
            if not self._lost:
                await self._leave()
        finally:
            self._heartbeat_thread.stop()
            await self._duties.stop()
            await self._stop_all(Why.LOST)
            await self._stop_beside()
            await self._settled()
            self._isolate.close()
            if not (self._lost or self._left):
                await self._move("gone")  # cancelled: what it held is taken back at once
        if self._heartbeat_error is not None and not self._leaving:
            await self._clock.sleep(NO_ANSWER)  # the next must not die as fast as it can boot
        return not (self._lost or self._worn)

    async def _begin(self) -> None:
        """A first boot that cannot be is told to whoever started it; a later one waits."""
        belong = [Belongs._make(each) for each in self._kinds.belong()]

        def boot(tx: Transaction) -> tuple[str, bool]:
            database_id = store.boot_runner(
                tx, self._boot, self._knobs.lease, self._kinds.at_once(), belong
            )
            store.declare_duties(tx, self._duties.names)
            return database_id, store.may_retire(tx)

        while True:
            try:
                self._tools.database_id, may_retire = await self._database.write(
                    boot, verb="boot"
                )
            except (Away, Full) as error:
                if not self._again or self._leaving:
                    raise
                log.warning("runner.boot_failed", runner=self._boot.id, error=str(error))
                await self._clock.sleep(NO_ANSWER)
            else:
                if not may_retire:
                    self._duties.leave_out(Duty.RETENTION)
                return

    def leave(self) -> None:
        self._leaving = True
        self._from_thread(self._wake.set)()  # whoever says so may be on another thread

    def look(self, queue: str | None = None) -> None:
        """Something may have changed, in this queue or anywhere: do not wait for the tick."""
        if queue is None:
            self._cursor.wake_all()
        else:
            self._cursor.wake(queue)
        self._rung = True
        self._wake.set()

    # — the loop —

    async def _work(self) -> None:
        next_tick = next_due = next_look = 0.0
        more = True
        while not (self._leaving or self._lost or self._worn):
            now = self._clock.now()
            if now >= next_look:
                next_look = now + LOOK
                if self._look_beside():
                    next_tick = now
            seen, sweep = None, False
            if now >= next_tick:
                seen = await self._look_around()
                next_tick = now + self._until_tick(seen)
            if seen is not None:
                next_due = now + (NEVER if seen.due is None else seen.due)
                more = more or seen.waiting or self._recall
                if seen.waiting:
                    self._cursor.wake_all()
                sweep = await self._must_sweep(seen)
                self._unheard |= seen.pauses != self._pauses.change
            if self._unheard and await self._hear_of_pauses():
                next_due, more = now, True
            looked = seen is not None
            if now >= self._duties.next():
                self._duties.begin()  # beside the loop: nobody's start waits for the counters
            if self._cancels_rung or (seen is not None and seen.cancels):
                await self._stop_canceled()
            free = min(self._free(), self._bite)
            if sweep or (free > 0 and (more or self._rung or now >= next_due)):
                self._rung, woken = False, self._cursor.woken()
                due = sweep or now >= next_due
                found = await self._claim(max(free, 0), sweep=sweep, promote=due)
                more = found is not None and (found.more or len(found.claims) >= free)
                if found is None:
                    next_due = now + NO_ANSWER
                elif due:
                    next_due = now + (NEVER if found.next_due is None else found.next_due)
                elif woken:
                    next_due = min(next_due, now + await self._until_due(woken))
                self._unheard |= found is not None and found.unheard
                if self._unheard or (found is not None and (found.claims or found.more)):
                    continue
                looked = looked or found is not None
            if self._until_idle and looked and await self._idle():
                return
            until = min(next_tick, next_look, self._duties.next())
            if self._free() > 0:
                await self._wait(min(until, next_due), more=more)
            else:
                # What is due has to wait for a slot: the one that gets free ends this wait.
                await self._wait(until, more=more or next_due <= until)

    def _look_beside(self) -> bool:
        """Whether somebody on this machine has come or gone, for whom the tick is too late."""
        if self._may_stall and not self._beside:
            self._run_beside(self._look_for_stalls())
        booted, self._booted_beside = self._booted_beside, False
        return self._watchdog.somebody_died() or booted

    async def _look_around(self) -> Around | None:
        """All that a tick asks where there is nothing to do; None: no answer came."""
        me, host = self._boot.id, self._boot.process.host
        about = {
            "queues": self._queues,
            "knows": self._knows,
            "duties": self._duties.names,
        }
        with self._outliving("look"):
            around = await self._database.read(
                lambda tx: store.look_around(tx, me, host, **about), patience=0
            )
            self._duties.want(around.duties)
            return around
        return None

    async def _hear_of_pauses(self) -> bool:
        """What is paused is not asked for from now on, what was resumed is; whether an answer came."""
        with self._outliving("pauses"):
            self._pauses = await self._database.read(pauses.known, patience=0)
            self._queues, self._knows = self._kinds.but(self._pauses.queues, self._pauses.kinds)
            self._cursor.know(self._queues)
            self._hints.forget()
            self._unheard = False
            return True
        await self._clock.sleep(0.1)
        return False

    def _until_tick(self, seen: Around | None) -> float:
        """Seconds to the next look around: no later than somebody's lease ends."""
        if seen is None:
            return NO_ANSWER
        ends = seen.lease_ends
        return self._knobs.tick if ends is None or ends <= 0 else min(ends, self._knobs.tick)

    async def _must_sweep(self, seen: Around) -> bool:
        """Whether the lost left something, a duty is free, or a gate open with jobs behind it."""
        if self._watchdog.see(seen) or self._duties.may_take(seen):
            return True
        with self._outliving("look"):
            return seen.aside and await self._database.read(store.any_gate_open, patience=0)
        return False

    async def _wait(self, until: float, *, more: bool) -> None:
        """Until somebody wakes us; a slot that gets free does so only while more is waiting."""
        self._wake_on_free = more
        if self._rung and self._free() > 0:
            return
        alarm = self._loop.call_later(max(until - self._clock.now(), 0.0), self._wake.set)
        try:
            await self._wake.wait()
        finally:
            alarm.cancel()
        self._wake.clear()

    async def _until_due(self, queues: list[str]) -> float:
        """Seconds until something scheduled in these queues wants its turn."""
        await self._clock.give_way()  # what has just been claimed begins first
        due = None
        with self._outliving("due"):
            due = await self._database.read(lambda tx: store.next_due(tx, queues), patience=0)
        return NEVER if due is None else due

    async def _claim(self, free: int, *, sweep: bool, promote: bool) -> Found | None:
        """Take up what waits, in a sweep also what the lost left; None: no answer came."""
        ask = self._asking(free, sweep=sweep, promote=promote)
        with self._outliving("claim"):
            if self._recall:
                await self._take_up_unknown()
            found = await self._database.write(
                ask, verb="tick" if sweep else "claim", lane=Lane.CLAIM, patience=0
            )
            crashpoint("runner.claimed")
            await self._start(found.claims)
            short = found.gated or len(found.claims) < free
            if self._hints.claimed(found.claims, short=short):
                self._rung = True  # nobody has looked at what stands before the hint
            elif self._cursor.claimed(found, free):
                self._rung = True  # other queues may fill the slots that are left
            self._gates.met(found, free)
            if sweep:
                self._duties.took()
                await self._watchdog.take_back_the_rest()
            return found
        self._recall = True  # it may have happened all the same
        await self._clock.sleep(0.1)
        return None

    def _asking(
        self, free: int, *, sweep: bool, promote: bool
    ) -> Callable[[Transaction], Found]:
        """What one transaction does for a claim."""
        # Not in a sweep: taking back has locked limits already, and there is one order for them.
        meet = 0 if sweep else self._gates.meet(free)
        if sweep or promote:
            self._cursor.wake_all()
        choice = self._cursor.choose(free, past_gates=meet > 0)
        request = ClaimRequest(
            boot=self._boot.id,
            queues=self._queues,
            choice=choice,
            after={queue: self._hints.after(queue) for queue in choice.queues},
            holding=self._holding,
            knows=self._knows,
            free=free,
            suspects=int(self._suspect is None and free > 0),
            promote=promote,
            pauses=self._pauses.change,
            meet=meet,
            holds=self._holds,
            # Only where it is thrown: how often is asked must not change what chance says (E23).
            dice=self._tools.rng.randrange(1, DICE) if self._holds else 1,
        )

        def ask(tx: Transaction) -> Found:
            if sweep:
                self._duties.take(tx)
                self._watchdog.recover(tx)
                store.open_gates(tx)
            return request.claim(tx)

        return ask

    async def _take_up_unknown(self) -> None:
        """Start the jobs of a claim whose answer was lost, or that could not be started then."""
        async with self._claiming:
            # Before the read: a claim that gets lost meanwhile is looked for again.
            self._recall = False
            try:
                await self._start(await self._unknown())
            except BaseException:
                self._recall = True
                raise

    async def _unknown(self) -> list[Claim]:
        """Claims that the database has and this instance has never started. None is made meanwhile."""
        # From before the read: what is settled during it was ours when the database looked.
        started = self._running.keys() | self._returning
        held = await self._database.read(
            lambda tx: store.recall_jobs(tx, self._boot.id), patience=0
        )
        return [claim for claim in held if claim.held not in started]

    async def _start(self, claims: list[Claim]) -> None:
        if not claims:
            return
        memories = await self._memories_of(claims)
        parents = {} if self._tools.traces is None else await self._parents_of(claims)
        for claim in claims:
            kind = self._kinds.tagged(claim.kind, claim.version)
            attempt = Attempt(claim, kind, self._tools, memories.get(claim.job, NOTHING))
            held = attempt.held
            self._running[held] = attempt
            self._telling.add(held)
            if claim.suspect:
                self._suspect = held
            attempt.start(parents.get(claim.job))

    async def _parents_of(self, claims: list[Claim]) -> dict[int, str]:
        """Not with the claim itself: nobody pays for it where nobody traces."""
        jobs = [claim.job for claim in claims]
        return await self._database.read(lambda tx: store.traceparents(tx, jobs))

    async def _memories_of(self, claims: list[Claim]) -> dict[int, Memory]:
        """Only jobs that have reached something can have steps."""
        begun = [claim for claim in claims if claim.checkpoint is not None]
        if not begun:
            return {}
        return await self._database.read(lambda tx: store.load_steps(tx, begun))

    def _free(self) -> int:
        """Slots no story is in; fewer while settling lags so far behind that they fill twice, and
        none while there is no room: what ends meanwhile could not be settled either."""
        if self._trouble.at(WRITE) or self._trouble.at(EVIDENCE):
            return 0
        slots = self._knobs.slots
        return min(slots - len(self._telling), 2 * slots - len(self._running))

    def _story_over(self, held: Held) -> None:
        self._telling.discard(held)
        if self._wake_on_free:
            self._wake.set()

    def _ended(self, held: Held, error: BaseException | None) -> None:
        attempt = self._running.pop(held, None)
        self._telling.discard(held)
        if self._suspect == held:
            self._suspect = None
            self.look()
        if self._until_idle and not self._running:
            self._rung = True
        if self._wake_on_free or self._rung:
            self._wake.set()
        if error is not None and attempt is not None:
            self._give_back(attempt.claim)  # it was never settled

    def _give_back(self, claim: Claim) -> None:
        """Let a job wait again, at no cost. It is never started again under the same epoch: what its
        broken attempt still saves would be done twice."""
        self._returning.add(
            claim.held
        )  # until it is written, the database says that it is ours
        answer: asyncio.Future[State] = self._loop.create_future()
        answer.add_done_callback(lambda done: self._given_back(claim, done))
        self._writer.settle(
            claim.held, claim.kind, settlement.RELEASED, answer, claim.limit_key
        )

    def _given_back(self, claim: Claim, answer: "asyncio.Future[State]") -> None:
        error = answer.exception()
        if error is not None and not isinstance(error, LeaseLost):
            log.error("runner.give_back_failed", job=claim.job, exc_info=error)
            self._loop.call_later(NO_ANSWER, self._give_back, claim)
            return
        self._returning.discard(claim.held)
        if error is None:
            self.look(claim.queue)

    async def _idle(self) -> bool:
        if self._running:
            return False
        if await self._duties.done(Duty.SCHEDULE):
            self._rung = True  # a tick may have submitted something
            return False
        if await self._database.read(lambda tx: store.any_open(tx, self._queues, self._knows)):
            return False
        if not await self._database.read(store.any_gate_open):
            return True
        # Somebody was set aside just as the gate opened, and would wait for the next look around.
        await self._database.write(store.open_gates, verb="tick")
        self._rung = True
        return False

    def _tell_of_trouble(self, told: str | None) -> None:
        self._heartbeat.report(told)
        self._heartbeat_thread.wake()

    def _outliving(self, what: str) -> "_Outliving":
        return _Outliving(self._boot.id, what, self._trouble)

    # — looking after others, and after our own —

    async def _fold(self) -> None:
        """What this runner moved is counted before it goes, whoever has the duty."""
        with self._outliving("fold"):
            await self._watchdog.fold()

    async def _stop_canceled(self) -> None:
        self._cancels_rung = False
        if not self._running:
            return
        with self._outliving("cancel"):
            wanted = await self._database.read(
                lambda tx: store.cancels(tx, self._boot.id), patience=0
            )
            for held in wanted:
                if held in self._running:
                    self._running[held].stop(Why.CANCEL)

    async def _look_for_stalls(self) -> None:
        with self._outliving("stall"):
            await self._stalls.run_once(list(self._running.values()))

    def _run_beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _stop_beside(self) -> None:
        for task in self._beside:
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)

    def _abandon(self, task: "asyncio.Task[Any]") -> None:
        """Its attempt has ended without it. Only the end of this process will end it."""
        self._abandoned.add(task)
        task.add_done_callback(self._abandoned.discard)
        # Else whoever closes the loop waits for it, for ever.
        asyncio._unregister_task(task)  # noqa: SLF001 — documented, for those who extend asyncio
        left = len(self._abandoned) + self._isolate.deserted
        if left > ABANDONED and not self._worn:
            log.error("runner.worn", runner=self._boot.id, abandoned=left)
            self._worn = True
            self._wake.set()

    # — called by the heartbeat, from its thread —

    def _from_thread(self, tell: Callable[..., None]) -> Callable[..., None]:
        def call(*args: object) -> None:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(tell, *args)

        return call

    def _hear(self, topics: set[str]) -> None:
        self._cancels_rung |= bool(topics & {f"cancel:{self._boot.id}", EVERYTHING})
        booted = {topic for topic in topics if topic.startswith(store.BOOTED)}
        self._booted_beside |= bool(booted - {f"{store.BOOTED}{self._boot.id}"})
        others = {topic for topic in topics if topic.startswith(("cancel:", store.DRAIN))}
        for topic in topics - booted - others:
            if topic in self._queues:
                self._hints.forget_queue(topic)
                self.look(topic)
            else:
                self._hints.forget()
                self.look()
        self._wake.set()

    def _drain(self) -> None:
        log.info("runner.drain_heard", runner=self._boot.id)
        self.drained = True
        self.leave()

    def _end_without_heartbeat(self, error: BaseException) -> None:
        """Give back what is running while the lease lasts; another instance goes on."""
        log.error("runner.heartbeat_died", runner=self._boot.id, exc_info=error)
        self._heartbeat_error = error
        self._worn = True
        self._wake.set()

    def _lose(self) -> None:
        """This boot is over: stop everything, write nothing."""
        log.error("runner.lost", runner=self._boot.id, running=len(self._running))
        self._lost = True
        self._writer.give_up()
        for attempt in list(self._running.values()):
            attempt.stop(Why.LOST)
        self._wake.set()

    # — leaving —

    async def _leave(self) -> None:
        log.info("runner.leaving", runner=self._boot.id, running=len(self._running))
        await self._duties.stop()
        await self._move("leaving")
        await self._give_back_unknown()
        await self._wait_for_attempts(self._grace())
        await self._stop_all(Why.RELEASE)
        if await self._settled():
            await self._fold()
            await self._move("gone")
        self._left = True

    async def _give_back_unknown(self) -> None:
        """What a claim without an answer has taken is not this instance's to run any more."""
        if self._recall:
            with self._outliving("claim"):
                async with (
                    self._claiming
                ):  # what is being claimed just now is started, not given back
                    for claim in await self._unknown():
                        self._give_back(claim)

    def _grace(self) -> float:
        """Seconds for running jobs to finish; without a heartbeat no longer than the lease is good."""
        if self._heartbeat_error is None:
            return self._knobs.grace
        return min(self._knobs.grace, self._heartbeat.valid_left())

    async def _settled(self) -> bool:
        """Until all that has ended is settled. False: it cannot be written. Whoever finds us gone
        takes those jobs back; nobody could settle them by waiting here for ever."""
        # A full disk has been full for as long as we waited: nothing says that it will not stay so.
        patience = LAST_TRY if self._trouble.at(WRITE) else SETTLING * self._knobs.let_go
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._writer.flush()
                    return True
            if self._writer.failing:  # else it is only slow
                log.error("runner.unsettled", runner=self._boot.id, running=len(self._running))
                self._writer.give_up()
                return False

    async def _move(self, to: str) -> None:
        me, died = self._boot.id, self._heartbeat_error
        why = None if died is None else f"heartbeat: {type(died).__name__}: {died}"
        try:
            await self._database.write(
                lambda tx: store.move_runner(tx, me, to, actor=me, why=why),
                verb=f"runner_{to}",
                patience=self._knobs.let_go,  # whoever leaves does not wait for an outage to end
            )
        except DatabaseError as error:
            log.warning("runner.move_failed", runner=self._boot.id, to=to, error=str(error))

    async def _wait_for_attempts(self, seconds: float) -> None:
        """Until every story has ended; one that is abandoned meanwhile is not waited for."""
        until = self._loop.time() + seconds
        while (left := until - self._loop.time()) > 0:
            tasks = [
                attempt.task
                for attempt in self._running.values()
                if attempt.task is not None and attempt.task not in self._abandoned
            ]
            if all(task.done() for task in tasks):
                return
            await asyncio.wait(tasks, timeout=min(left, LOOK))

    async def _stop_all(self, why: Why) -> None:
        for attempt in list(self._running.values()):
            attempt.stop(why)
        await self._wait_for_attempts(self._knobs.let_go)
        for attempt in list(self._running.values()):
            attempt.abandon()


class _Outliving:
    """Nothing that goes wrong in here ends the runner: it is told, and tried again later."""

    def __init__(self, boot: str, what: str, trouble: Trouble) -> None:
        self._boot = boot
        self._what = what
        self._trouble = trouble

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        match error:
            case None:
                self._trouble.over(self._what)
            case Full():
                self._trouble.met(self._what, error)
            case DatabaseError():
                log.warning(
                    "runner.trouble", at=self._what, runner=self._boot, error=str(error)
                )
            case Exception():
                log.error("runner.trouble", at=self._what, runner=self._boot, exc_info=error)
            case _:
                return False
        return True
