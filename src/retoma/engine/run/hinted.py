"""A runner that claims only jobs it gets hints for, by id, and does no leader task unasked.

For a process that another system wakes, as a worker of Celery: hints are processed one by one, leader tasks when
a message says so. Everything else is as in any runner: one instance, its heartbeats, the fence.
"""

import asyncio
from contextlib import suppress
from enum import StrEnum
from typing import Any

from structlog.contextvars import bound_contextvars

from retoma.db import DatabaseError, Lane, Transaction, crashpoint
from retoma.engine import store
from retoma.engine.log import get_logger
from retoma.engine.ops.leader_tasks import Duty, DutyLost, Fence
from retoma.engine.ops.watchdog import Swept
from retoma.engine.rules.job import Claim, Held
from retoma.engine.run.attempt_services import DICE
from retoma.engine.run.runner import RunnerInstance, RunnerParts
from retoma.engine.run.running_jobs import LOOK, RunningJobs
from retoma.engine.run.stop_request import Why
from retoma.engine.store import hints, pauses
from retoma.engine.store.claim import claim_job
from retoma.engine.store.duties import lay_down_duty
from retoma.engine.store.hints import Again, Hint

log = get_logger("retoma.hinted")


class Heeded(StrEnum):
    """What became of a hint."""

    RAN = "ran"
    MADE_ROOM = "made_room"  # it ran past a gate: its end may have let another in
    PASSED = "passed"  # somebody has it, or it may not run now; it was a hint, no more
    UNKNOWN = "unknown"  # there is no such job in that queue


class Leaving(Exception):
    """This runner was told to stop, and begins nothing more."""


class HintedRunner:
    """Does what it is asked, under one instance after another. The first begins when it is first asked."""

    def __init__(self, parts: RunnerParts) -> None:
        self._parts = parts
        self._instance: HintedInstance | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    async def heed(self, hint: Hint) -> Heeded:
        """Claim that job and run it to its end, if it may run here and now."""
        return await (await self._booted()).heed(hint)

    async def recover(self) -> Swept:
        """Declare the lost lost, take back what they had, open the gates that have room."""
        return await (await self._booted()).recover()

    async def do(self, duty: Duty) -> bool:
        """A duty, once; whether it was ours to do."""
        return await (await self._booted()).do(duty)

    async def hint_again(self, again: Again, queue: str | None = None) -> list[Hint]:
        """What is ready and was not hinted for a while: somebody must be told of it now."""
        return await (await self._booted()).hint_again(again, queue)

    def release(self, hint: Hint) -> None:
        """Let go of that job, if it runs here: whoever asked for it waits no longer."""
        if self._instance is not None:
            self._instance.release(hint)

    def stop(self) -> None:
        """Claim nothing more; finish or give back what is running, then leave."""
        self._stopping = True
        if self._instance is not None:
            self._instance.leave()

    async def stopped(self) -> None:
        """Return when it has left."""
        self.stop()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def end(self) -> None:
        """At once: what it held is taken back by others."""
        self._stopping = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _booted(self) -> "HintedInstance":
        """An instance that has begun. Why none can begin is raised to the caller."""
        while not self._stopping:
            if self._instance is None or self._task is None or self._task.done():
                self._instance = HintedInstance(self._parts)
                self._task = asyncio.get_running_loop().create_task(self._run(self._instance))
            instance = self._instance
            if await instance.begun(self._task):
                return instance
            if self._task.done():
                self._task.result()
        raise Leaving

    async def _run(self, instance: "HintedInstance") -> None:
        while not (await instance.run() or self._stopping):
            instance.over.set()
            instance = self._instance = HintedInstance(self._parts, again=True)


class HintedInstance(RunnerInstance):
    """Its loop only looks after the jobs that it was asked to run."""

    def __init__(self, parts: RunnerParts, *, again: bool = False) -> None:
        self._ends: dict[Held, asyncio.Future[None]] = {}
        super().__init__(parts, until_idle=False, again=again)
        self.over = asyncio.Event()
        # Wound only while a job runs: whatever else this process does is not ours to end.
        self._own_watch, self._loop_watch = (
            self._loop_watch,
            self._held_loops.watch(self._boot.id, 0),
        )
        self._up = asyncio.Event()
        self._chores = self._chores_of()

    def _new_jobs(self) -> RunningJobs:
        jobs = super()._new_jobs()
        jobs.on_started, jobs.on_ended = self._started, self._ended
        return jobs

    async def begun(self, task: "asyncio.Task[None]") -> bool:
        """Whether this instance has begun and goes on; where it does not, when it is over."""
        await _first(self._up, task)
        if self._up.is_set() and not self._is_ended():
            return True
        await _first(self.over, task)
        return False

    async def run(self) -> bool:
        try:
            return await super().run()
        finally:
            self._own_watch.stop()

    async def _begin(self) -> None:
        await super()._begin()
        self._up.set()

    async def _work(self) -> None:
        while not self._is_ended():
            if self._signals.cancels:
                await self._stop_canceled()
            if self._claims.answer_lost:
                with self._tolerated("claim"):
                    await self._claims.start_unknown()
            if self._may_stall and self._jobs and not self._jobs.busy_beside:
                self._jobs.run_beside(self._look_for_stalls())
            busy = bool(self._jobs) or self._claims.answer_lost
            await self._wait_for(LOOK if busy else None)

    async def _wait_for(self, seconds: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._signals.wake.wait()
        self._signals.wake.clear()

    # — hints —

    async def heed(self, hint: Hint) -> Heeded:
        if self._jobs.free() <= 0:
            return Heeded.PASSED
        # Most hints of a job that somebody has are copies: a look is cheaper than a claim of nothing.
        ready = await self._database.read(lambda tx: hints.is_ready(tx, hint))
        if ready is None:
            return Heeded.UNKNOWN
        claim = await self._claim_hinted(hint) if ready else None
        if claim is None:
            return Heeded.PASSED
        await self._ends[claim.held]
        gated = claim.limit_key is not None or claim.tag in self._claims.holds
        return Heeded.MADE_ROOM if gated else Heeded.RAN

    async def _claim_hinted(self, hint: Hint) -> Claim | None:
        """The claim of that job, started; None where it may not be claimed now."""
        try:
            async with self._claims.lock:
                claim = await self._claim_job(hint)
                if claim is None:
                    return None
                crashpoint("runner.claimed")
                self._ends[claim.held] = self._loop.create_future()
                with bound_contextvars(runner=self._boot.id):
                    await self._claims.start([claim])
                return claim
        except DatabaseError:
            self._claims.answer_lost = True
            self._signals.wake.set()
            raise

    async def _claim_job(self, hint: Hint) -> Claim | None:
        how: dict[str, Any] = {
            "suspects": int(self._jobs.suspect is None),
            "holds": self._claims.holds,
            "dice": self._services.rng.randrange(1, DICE),
        }
        return await self._database.write(
            lambda tx: claim_job(tx, self._boot.id, *hint, self._boot.knows, **how),
            verb="claim",
            lane=Lane.CLAIM,
            patience=0,
        )

    def _started(self) -> None:
        self._own_watch.start()
        self._signals.wake.set()  # the loop looks after them from now on

    def _ended(self, held: Held) -> None:
        if not self._jobs:
            self._own_watch.stop()
        end = self._ends.pop(held, None)
        if end is not None and not end.done():
            end.set_result(None)

    def release(self, hint: Hint) -> None:
        for attempt in self._jobs.attempts():
            if attempt.held.job == hint.job:
                attempt.stop(Why.RELEASE)

    async def hint_again(self, again: Again, queue: str | None) -> list[Hint]:
        def hint(tx: Transaction) -> list[Hint]:
            paused = pauses.known(tx)
            queues, knows = self._kinds.but(paused.queues, paused.kinds)
            if queue is not None:
                queues = [] if queue in paused.queues else [queue]
            return hints.hint_jobs(tx, queues, knows, again)

        return await self._database.write(hint, verb="hint")

    # — what the whole house needs —

    async def recover(self) -> Swept:
        def look(tx: Transaction) -> None:
            self._watchdog.recover(tx)
            store.open_gates(tx)

        await self._database.write(look, verb="recover", lane=Lane.CLAIM)
        return await self._watchdog.take_back_the_rest()

    async def do(self, duty: Duty) -> bool:
        """Taken, done once and laid down: the next message may come to another process."""
        if duty not in self._chores:
            return False
        taken = await self._database.write(
            lambda tx: store.take_duties(tx, self._boot.id, [duty]), verb="duty"
        )
        term = next((each.term for each in taken if each.term.duty == duty), None)
        if term is None:
            return False
        try:
            await self._chores[duty](Fence(self._database, term))
        except DutyLost as error:
            log.info("duty.lost", duty=duty, runner=self._boot.id, told=str(error))
            return False
        finally:
            await self._database.write(lambda tx: lay_down_duty(tx, term), verb="duty")
        return True


async def _first(event: asyncio.Event, task: "asyncio.Task[None]") -> None:
    """Return when it is set, or when the task that would set it has ended."""
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait([waiting, task], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
