"""A runner that claims only what it is told of, by id, and does no duty unasked.

For a process that somebody else wakes, as a worker of Celery: hints are asked one by one, duties when
a message says so. Everything else is as in any runner: one boot, its beats, the fence.
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
from retoma.engine.run.attempt import DICE, Why
from retoma.engine.run.runner import LOOK, House, Life
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
    """Does what it is asked, under one boot after another. Boots when it is first asked."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._life: HintedLife | None = None
        self._living: asyncio.Task[None] | None = None
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
        if self._life is not None:
            self._life.release(hint)

    def stop(self) -> None:
        """Claim nothing more; finish or give back what is running, then leave."""
        self._stopping = True
        if self._life is not None:
            self._life.leave()

    async def stopped(self) -> None:
        """Return when it has left."""
        self.stop()
        if self._living is not None:
            await asyncio.wait([self._living])

    async def end(self) -> None:
        """At once: what it held is taken back by others."""
        self._stopping = True
        if self._living is not None:
            self._living.cancel()
            await asyncio.wait([self._living])

    async def _booted(self) -> "HintedLife":
        """A life that has begun. Why none can begin is told to whoever asks."""
        while not self._stopping:
            if self._life is None or self._living is None or self._living.done():
                self._life = HintedLife(self._house)
                self._living = asyncio.get_running_loop().create_task(self._live(self._life))
            life = self._life
            if await life.begun(self._living):
                return life
            if self._living.done():
                self._living.result()
        raise Leaving

    async def _live(self, life: "HintedLife") -> None:
        while not (await life.lived() or self._stopping):
            life.over.set()
            life = self._life = HintedLife(self._house, again=True)


class HintedLife(Life):
    """One boot. Its loop only looks after what it was asked to run."""

    def __init__(self, house: House, *, again: bool = False) -> None:
        super().__init__(house, until_idle=False, again=again)
        self.over = asyncio.Event()
        # Wound only while a job runs: whatever else this process does is not ours to end.
        self._own_watch, self._loop_watch = (
            self._loop_watch,
            self._held_loops.watch(self._boot.id, 0),
        )
        self._up = asyncio.Event()
        self._ends: dict[Held, asyncio.Future[None]] = {}
        self._chores = self._chores_of()

    async def begun(self, living: "asyncio.Task[None]") -> bool:
        """Whether this life has begun and goes on; where it does not, when it is over."""
        await _first(self._up, living)
        if self._up.is_set() and not (self._lost or self._leaving or self._worn):
            return True
        await _first(self.over, living)
        return False

    async def lived(self) -> bool:
        try:
            return await super().lived()
        finally:
            self._own_watch.stop()

    async def _begin(self) -> None:
        await super()._begin()
        self._up.set()

    async def _work(self) -> None:
        while not (self._leaving or self._lost or self._worn):
            if self._cancels_rung:
                await self._stop_canceled()
            if self._recall:
                with self._outliving("claim"):
                    await self._take_up_unknown()
            if self._may_stall and self._running and not self._beside:
                self._run_beside(self._look_for_stalls())
            busy = bool(self._running) or self._recall
            await self._wait_for(LOOK if busy else None)

    async def _wait_for(self, seconds: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()

    # — hints —

    async def heed(self, hint: Hint) -> Heeded:
        if self._free() <= 0:
            return Heeded.PASSED
        # Most hints of a job that somebody has are copies: a look is cheaper than a claim of nothing.
        ready = await self._database.read(lambda tx: hints.is_ready(tx, hint))
        if ready is None:
            return Heeded.UNKNOWN
        claim = await self._claim_hinted(hint) if ready else None
        if claim is None:
            return Heeded.PASSED
        await self._ends[claim.held]
        gated = claim.limit_key is not None or claim.tag in self._holds
        return Heeded.MADE_ROOM if gated else Heeded.RAN

    async def _claim_hinted(self, hint: Hint) -> Claim | None:
        """The claim of that job, started; None where it may not be claimed now."""
        try:
            async with self._claiming:
                claim = await self._claim_job(hint)
                if claim is None:
                    return None
                crashpoint("runner.claimed")
                self._ends[claim.held] = self._loop.create_future()
                with bound_contextvars(runner=self._boot.id):
                    await self._start([claim])
                return claim
        except DatabaseError:
            self._recall = True  # it may have happened all the same
            self._wake.set()
            raise

    async def _claim_job(self, hint: Hint) -> Claim | None:
        how: dict[str, Any] = {
            "suspects": int(self._suspect is None),
            "holds": self._holds,
            "dice": self._tools.rng.randrange(1, DICE),
        }
        return await self._database.write(
            lambda tx: claim_job(tx, self._boot.id, *hint, self._boot.knows, **how),
            verb="claim",
            lane=Lane.CLAIM,
            patience=0,
        )

    async def _start(self, claims: list[Claim]) -> None:
        if claims and not self._running:
            self._own_watch.start()
        await super()._start(claims)
        self._wake.set()  # the loop looks after them from now on

    def _ended(self, held: Held, error: BaseException | None) -> None:
        super()._ended(held, error)
        if not self._running:
            self._own_watch.stop()
        end = self._ends.pop(held, None)
        if end is not None and not end.done():
            end.set_result(None)

    def release(self, hint: Hint) -> None:
        for held, attempt in list(self._running.items()):
            if held.job == hint.job:
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


async def _first(event: asyncio.Event, living: "asyncio.Task[None]") -> None:
    """Return when it is set, or when nobody is left to set it."""
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait([waiting, living], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
