"""A runner: claims jobs, runs them, gives them back when it must.

When the database no longer counts an instance of a runner as alive, everything it holds is stopped, nothing of
it is written, and a new instance begins. What it does next is decided by `next_action`.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from structlog.contextvars import bound_contextvars

from retoma.db import EVERYTHING, Away, Database, DatabaseError, Full, Transaction
from retoma.engine import store
from retoma.engine.handlers.kinds import Kinds
from retoma.engine.isolation.isolate import Isolate
from retoma.engine.log import get_logger
from retoma.engine.ops import alerts, retention, schedules
from retoma.engine.ops.alerts import Alerts, HandOver
from retoma.engine.ops.leader_tasks import NEVER, Chore, Duties, Duty
from retoma.engine.ops.loop_watchdog import HeldLoops
from retoma.engine.ops.retention import Retention, Watched
from retoma.engine.ops.watchdog import Watchdog
from retoma.engine.ports import Clock, Ids, Processes, chance
from retoma.engine.rules.live_settings import Declared
from retoma.engine.run import filling
from retoma.engine.run.byte_budget import ByteBudget
from retoma.engine.run.claim_cursor import QueueCursor
from retoma.engine.run.claims import Claims
from retoma.engine.run.heartbeat import Heartbeat, HeartbeatThread
from retoma.engine.run.next_action import (
    Action,
    LoopState,
    next_action,
    wait_until,
    wakes_on_free_slot,
)
from retoma.engine.run.runner_options import RunnerOptions
from retoma.engine.run.runner_services import RunnerServices
from retoma.engine.run.running_jobs import LOOK, NO_ANSWER, RunningJobs
from retoma.engine.run.signals import Signals
from retoma.engine.run.stalls import StallWatch
from retoma.engine.run.step_transaction import Effects
from retoma.engine.run.stop_request import Why
from retoma.engine.run.tolerated import Tolerated
from retoma.engine.store import Around, Boot
from retoma.engine.store.pauses import Belongs
from retoma.engine.traces import Traces
from retoma.engine.writing.database_health import Trouble
from retoma.engine.writing.evidence import Keeper
from retoma.engine.writing.group_writer import WRITE, Writer

PARTS = 2  # claims in which a runner fills its slots
# Times as long as a handler may take to let go: what has ended may take to be settled.
SETTLING = 3
# Seconds for what could not be written for want of room; with the others less than 30.
LAST_TRY = 1.5

log = get_logger("retoma.runner")


class Runner:
    """Runs the kinds it knows, as many jobs at a time as it has slots."""

    def __init__(self, parts: "RunnerParts") -> None:
        self._parts = parts
        self._stopping = False
        self._instance: RunnerInstance | None = None

    async def run(self, *, until_idle: bool = False) -> None:
        """Work until stopped, or until nothing waits any more."""
        again = False
        while not self._stopping:
            instance = RunnerInstance(self._parts, until_idle=until_idle, again=again)
            self._instance, again = instance, True
            try:
                if await instance.run() or instance.drained:
                    return
            finally:
                self._instance = None

    def stop(self) -> None:
        """Claim nothing more; finish or give back what is running, then leave."""
        self._stopping = True
        if self._instance is not None:
            self._instance.leave()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerParts:
    """What every instance of a runner works with."""

    database: Database
    kinds: Kinds
    options: RunnerOptions
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


class RunnerInstance:
    """One start of a runner: it has a row, a lease and a heartbeat of its own."""

    def __init__(self, parts: RunnerParts, *, until_idle: bool, again: bool = False) -> None:
        self._database = parts.database
        self._options = parts.options
        self._clock = parts.clock
        self._kinds = parts.kinds
        self._processes = parts.processes
        self._held_loops = parts.held_loops
        self._again = again
        self._until_idle = until_idle
        self._loop = asyncio.get_running_loop()
        # What has happened to it.
        self._leaving = self._left = self._lost = False
        self._worn = False  # it leaves, and another instance begins
        self.drained = False  # a person wants this runner gone, not only this instance
        self._heartbeat_error: BaseException | None = (
            None  # what has ended its heartbeat thread
        )
        # Who works for it.
        self._boot = self._new_boot(parts)
        self._trouble = Trouble(self._boot.id, self._report_trouble)
        self._writer = Writer(self._database, self._boot.id, self._clock, self._trouble)
        self._watchdog = self._new_watchdog()
        self._fixed = parts.declared.fixed
        self._retention = Retention(
            self._options.keep, self._boot.id, parts.keeper, self._fixed
        )
        self._cursor = QueueCursor(self._clock, self._kinds.queues())
        self._signals = Signals(self._cursor)
        self._duties = self._new_duties()
        self._isolate = parts.new_isolate()
        self._loop_watch = self._held_loops.watch(self._boot.id, self._options.loop_limit)
        self._stalls = StallWatch(self._clock, stop=self._options.stop_stalled)
        self._may_stall = any(kind.stall is not None for kind in self._kinds)
        self._heartbeat = self._new_heartbeat()
        self._heartbeat_thread = parts.new_heartbeat_thread(
            self._heartbeat,
            self._database,
            on_death=self._from_thread(self._end_without_heartbeat),
        )
        self._jobs = self._new_jobs()
        self._services = self._new_services(parts)
        self._claims = self._new_claims()
        # A part at a time: what was claimed is begun while the next is claimed.
        self._slice = max(self._options.slots // PARTS, 1)

    def _new_boot(self, parts: RunnerParts) -> Boot:
        return Boot(
            id=parts.ids.new(),
            name=self._options.name,
            process=parts.processes.this(self._options.host),
            version=self._options.version,
            slots=self._options.slots,
            knows=self._kinds.tags(),
        )

    def _new_watchdog(self) -> Watchdog:
        options, boot = self._options, self._boot
        about = (options.lease, options.timezone, self._processes, self._held_loops)
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
            wake=self._signals.wake.set,
        )

    def _chores_of(self) -> dict[str, Chore]:
        """The leader tasks that this runner can do."""
        chores: dict[str, Chore] = {
            Duty.ALERTS: Alerts(self._options.timezone, self._fixed).chore,
            Duty.FILL: filling.finish_left,
            Duty.FOLD: self._watchdog.fold_chore,
            Duty.RETENTION: self._retention.chore,
            Duty.SCHEDULE: schedules.tick,
        }
        notices = HandOver(self._kinds, self._fixed)
        if notices.wanted:
            chores[Duty.NOTIFY] = notices.chore
        return chores

    def _new_heartbeat(self) -> Heartbeat:
        return Heartbeat(
            self._database,
            self._boot.id,
            self._clock,
            lease=self._options.lease,
            beat=self._options.beat,
            on_wake_up=self._from_thread(self._hear),
            on_lost=self._from_thread(self._lose),
            on_drain=self._from_thread(self._drain),
        )

    def _new_jobs(self) -> RunningJobs:
        return RunningJobs(
            instance=self._boot.id,
            slots=self._options.slots,
            signals=self._signals,
            writer=self._writer,
            trouble=self._trouble,
            isolate=self._isolate,
            until_idle=self._until_idle,
        )

    def _new_services(self, parts: RunnerParts) -> RunnerServices:
        instance, clock, trouble = self._boot.id, self._clock, self._trouble
        effects = Effects(
            parts.database, instance, parts.kinds, parts.ids, clock, trouble, parts.declared
        )
        return RunnerServices(
            instance=instance,
            database=self._database,
            effects=effects,
            writer=self._writer,
            trouble=trouble,
            heartbeat=self._heartbeat,
            isolate=self._isolate,
            keeper=parts.keeper,
            clock=clock,
            rng=parts.rng,
            owner=self._jobs,
            let_go=self._options.let_go,
            timezone=self._options.timezone,
            keep_reuse=self._options.keep.reuse,
            step_memory=ByteBudget(self._options.step_memory),
            traces=parts.traces,
        )

    def _new_claims(self) -> Claims:
        return Claims(
            kinds=self._kinds,
            knows=self._boot.knows,
            cursor=self._cursor,
            signals=self._signals,
            jobs=self._jobs,
            services=self._services,
            duties=self._duties,
            watchdog=self._watchdog,
        )

    async def run(self) -> bool:
        """Work until stopped or idle (True), or until this instance is over (False)."""
        await self._begin()
        with self._loop_watch:
            return await self._work_and_leave()

    async def _work_and_leave(self) -> bool:
        try:
            self._heartbeat_thread.start()
            log.info("runner.booted", runner=self._boot.id, name=self._boot.name)
            # Every line that a handler writes says on which runner it ran.
            with bound_contextvars(runner=self._boot.id):
                await self._work()
            if not self._lost:
                await self._leave()
        finally:
            self._heartbeat_thread.stop()
            await self._duties.stop()
            await self._jobs.stop_all(Why.LOST, self._options.let_go)
            await self._jobs.stop_beside()
            await self._settled()
            self._isolate.close()
            if not (self._lost or self._left):
                await self._move("gone")  # cancelled: what it held is taken back at once
        if self._heartbeat_error is not None and not self._leaving:
            await self._clock.sleep(NO_ANSWER)  # the next must not die as fast as it can boot
        return not (self._lost or self._is_worn())

    async def _begin(self) -> None:
        """A first instance that cannot be written raises; a later one waits."""
        belong = [Belongs._make(each) for each in self._kinds.belong()]

        def boot(tx: Transaction) -> tuple[str, bool]:
            database_id = store.boot_runner(
                tx, self._boot, self._options.lease, self._kinds.at_once(), belong
            )
            store.declare_duties(tx, self._duties.names)
            return database_id, store.may_retire(tx)

        while True:
            try:
                self._services.database_id, may_retire = await self._database.write(
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
        self._from_thread(self._signals.wake.set)()  # the caller may be on another thread

    def _is_worn(self) -> bool:
        return self._worn or self._jobs.worn

    def _is_ended(self) -> bool:
        return self._leaving or self._lost or self._is_worn()

    # — the loop —

    async def _work(self) -> None:
        """Do what `next_action` says, until it says to leave."""
        turn = _Turn(self._clock.now())
        while True:
            state = self._state(turn)
            match next_action(state):
                case Action.LEAVE:
                    return
                case Action.CHECK_MACHINE:
                    self._check_machine(turn)
                case Action.LOOK_AROUND:
                    await self._look_around(turn)
                case Action.READ_PAUSES:
                    await self._read_pauses(turn)
                case Action.START_TASKS:
                    self._duties.begin()  # beside the loop: no start waits for the counters
                case Action.STOP_CANCELED:
                    await self._stop_canceled()
                case Action.CLAIM:
                    await self._claim(turn, state)
                case Action.CHECK_IDLE:
                    turn.answered = False
                    if await self._idle():
                        return
                case Action.WAIT:
                    await self._wait(wait_until(state), free_slot=wakes_on_free_slot(state))
                    self._begin_turn(turn)

    def _state(self, turn: "_Turn") -> LoopState:
        return LoopState(
            now=turn.now,
            ended=self._is_ended(),
            next_check=turn.next_check,
            next_tick=turn.next_tick,
            next_task=self._duties.next(),
            next_due=turn.next_due,
            pauses_changed=self._claims.pauses_changed and not turn.pauses_read,
            cancels=self._signals.cancels,
            sweep=turn.sweep,
            free=min(self._jobs.free(), self._slice),
            more=turn.more,
            notified=self._signals.notified,
            claimed=turn.claimed,
            answered=turn.answered,
            until_idle=self._until_idle,
        )

    def _begin_turn(self, turn: "_Turn") -> None:
        turn.now = self._clock.now()
        turn.sweep = turn.claimed = turn.answered = turn.pauses_read = False

    def _check_machine(self, turn: "_Turn") -> None:
        """Whether a process on this machine has come or gone, for which the tick is too late."""
        turn.next_check = turn.now + LOOK
        if self._may_stall and not self._jobs.busy_beside:
            self._jobs.run_beside(self._look_for_stalls())
        started, self._signals.instance_started = self._signals.instance_started, False
        if self._watchdog.somebody_died() or started:
            turn.next_tick = turn.now

    async def _look_around(self, turn: "_Turn") -> None:
        """Read all that a tick asks where there is nothing to do."""
        seen = await self._read_around()
        turn.next_tick = turn.now + self._until_tick(seen)
        if seen is None:
            return
        turn.answered = True
        turn.next_due = turn.now + (NEVER if seen.due is None else seen.due)
        turn.more = turn.more or seen.waiting or self._claims.answer_lost
        if seen.waiting:
            self._claims.wake_all()
        turn.sweep = await self._must_sweep(seen)
        self._claims.see_pauses(seen.pauses)
        self._signals.cancels |= seen.cancels

    async def _read_around(self) -> Around | None:
        """None: no answer came."""
        me, host = self._boot.id, self._boot.process.host
        queues, knows, duties = self._claims.queues, self._claims.knows, self._duties.names
        with self._tolerated("look"):
            around = await self._database.read(
                lambda tx: store.look_around(
                    tx, me, host, queues=queues, knows=knows, duties=duties
                ),
                patience=0,
            )
            self._duties.want(around.duties)
            return around
        return None

    def _until_tick(self, seen: Around | None) -> float:
        """Seconds to the next look around: no later than another instance's lease ends."""
        if seen is None:
            return NO_ANSWER
        ends, tick = seen.lease_ends, self._options.tick
        return tick if ends is None or ends <= 0 else min(ends, tick)

    async def _must_sweep(self, seen: Around) -> bool:
        """Whether the lost left something, a duty is free, or a gate open with jobs behind it."""
        if self._watchdog.see(seen) or self._duties.may_take(seen):
            return True
        with self._tolerated("look"):
            return seen.aside and await self._database.read(store.any_gate_open, patience=0)
        return False

    async def _read_pauses(self, turn: "_Turn") -> None:
        turn.pauses_read = True
        if await self._claims.read_pauses():
            turn.next_due, turn.more = turn.now, True

    async def _claim(self, turn: "_Turn", state: LoopState) -> None:
        turn.claimed, turn.sweep = True, False
        self._signals.notified, woken = False, self._claims.woken()
        due = state.sweep or turn.now >= turn.next_due
        free = max(state.free, 0)
        found = await self._claims.claim(free, sweep=state.sweep, promote=due)
        if found is None:
            turn.more, turn.next_due = False, turn.now + NO_ANSWER
        else:
            turn.answered = True
            turn.more = found.more or len(found.claims) >= state.free
            if due:
                turn.next_due = turn.now + (NEVER if found.next_due is None else found.next_due)
            elif woken:
                after = await self._claims.until_due(woken)
                turn.next_due = min(turn.next_due, turn.now + after)
        if self._claims.pauses_changed or (found is not None and (found.claims or found.more)):
            self._begin_turn(turn)

    async def _stop_canceled(self) -> None:
        self._signals.cancels = False
        if not self._jobs:
            return
        with self._tolerated("cancel"):
            wanted = await self._database.read(
                lambda tx: store.cancels(tx, self._boot.id), patience=0
            )
            for held in wanted:
                self._jobs.cancel(held)

    async def _idle(self) -> bool:
        if self._jobs:
            return False
        if await self._duties.done(Duty.SCHEDULE):
            self._signals.notified = True  # a tick may have submitted something
            return False
        queues, knows = self._claims.queues, self._claims.knows
        if await self._database.read(lambda tx: store.any_open(tx, queues, knows)):
            return False
        if not await self._database.read(store.any_gate_open):
            return True
        # A job was gated just as the gate opened, and would wait for the next look around.
        await self._database.write(store.open_gates, verb="tick")
        self._signals.notified = True
        return False

    async def _wait(self, until: float, *, free_slot: bool) -> None:
        """Until a signal comes, or until then. `free_slot`: whether a slot that gets free is one."""
        self._signals.free_slot_wakes = free_slot
        wake = self._signals.wake
        if self._signals.notified and self._jobs.free() > 0:
            return
        alarm = self._loop.call_later(max(until - self._clock.now(), 0.0), wake.set)
        try:
            await wake.wait()
        finally:
            alarm.cancel()
        wake.clear()

    async def _look_for_stalls(self) -> None:
        with self._tolerated("stall"):
            await self._stalls.run_once(self._jobs.attempts())

    def _report_trouble(self, text: str | None) -> None:
        self._heartbeat.report(text)
        self._heartbeat_thread.wake()

    def _tolerated(self, at: str) -> Tolerated:
        return Tolerated(self._boot.id, self._trouble, at)

    # — called by the heartbeat, from its thread —

    def _from_thread(self, notify: Callable[..., None]) -> Callable[..., None]:
        def call(*args: object) -> None:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(notify, *args)

        return call

    def _hear(self, topics: set[str]) -> None:
        self._signals.cancels |= bool(topics & {f"cancel:{self._boot.id}", EVERYTHING})
        booted = {topic for topic in topics if topic.startswith(store.BOOTED)}
        self._signals.instance_started |= bool(booted - {f"{store.BOOTED}{self._boot.id}"})
        others = {topic for topic in topics if topic.startswith(("cancel:", store.DRAIN))}
        for topic in topics - booted - others:
            self._claims.wake(topic)
        self._signals.wake.set()

    def _drain(self) -> None:
        log.info("runner.drain_heard", runner=self._boot.id)
        self.drained = True
        self.leave()

    def _end_without_heartbeat(self, error: BaseException) -> None:
        """Give back what is running while the lease lasts; another instance goes on."""
        log.error("runner.heartbeat_died", runner=self._boot.id, exc_info=error)
        self._heartbeat_error = error
        self._worn = True
        self._signals.wake.set()

    def _lose(self) -> None:
        """This instance is over: stop everything, write nothing."""
        log.error("runner.lost", runner=self._boot.id, running=len(self._jobs))
        self._lost = True
        self._writer.give_up()
        self._jobs.request_stop(Why.LOST)
        self._signals.wake.set()

    # — leaving —

    async def _leave(self) -> None:
        log.info("runner.leaving", runner=self._boot.id, running=len(self._jobs))
        await self._duties.stop()
        await self._move("leaving")
        await self._claims.give_back_unknown()
        await self._jobs.wait(self._grace())
        await self._jobs.stop_all(Why.RELEASE, self._options.let_go)
        if await self._settled():
            # What this runner moved is counted before it goes, whoever has the duty.
            with self._tolerated("fold"):
                await self._watchdog.fold()
            await self._move("gone")
        self._left = True

    def _grace(self) -> float:
        """Seconds for running jobs to finish; without a heartbeat no longer than the lease is good."""
        if self._heartbeat_error is None:
            return self._options.grace
        return min(self._options.grace, self._heartbeat.valid_left())

    async def _settled(self) -> bool:
        """Until all that has ended is settled. False: it cannot be written. Another runner takes
        those jobs back; waiting here for ever would settle none of them."""
        # A full disk has been full for as long as we waited: nothing says that it will not stay so.
        patience = LAST_TRY if self._trouble.at(WRITE) else SETTLING * self._options.let_go
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._writer.flush()
                    return True
            if self._writer.failing:  # else it is only slow
                log.error("runner.unsettled", runner=self._boot.id, running=len(self._jobs))
                self._writer.give_up()
                return False

    async def _move(self, to: str) -> None:
        me, died = self._boot.id, self._heartbeat_error
        why = None if died is None else f"heartbeat: {type(died).__name__}: {died}"
        try:
            await self._database.write(
                lambda tx: store.move_runner(tx, me, to, actor=me, why=why),
                verb=f"runner_{to}",
                patience=self._options.let_go,  # a leaving runner does not wait for an outage to end
            )
        except DatabaseError as error:
            log.warning("runner.move_failed", runner=self._boot.id, to=to, error=str(error))


@dataclass(slots=True)
class _Turn:
    """What the loop remembers, from one turn to the next and within a turn."""

    now: float
    next_check: float = 0.0
    next_tick: float = 0.0
    next_due: float = 0.0
    more: bool = True
    # Of this turn.
    sweep: bool = False
    claimed: bool = False
    answered: bool = False
    pauses_read: bool = False
