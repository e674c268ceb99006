"""Claim jobs and start them: of which queues, how many, and what to do where an answer was lost."""

import asyncio
from collections.abc import Callable, Sequence

from retoma.db import Database, Lane, Transaction, crashpoint
from retoma.engine import store
from retoma.engine.handlers.kinds import Kinds
from retoma.engine.ops.leader_tasks import NEVER, Duties
from retoma.engine.ops.watchdog import Watchdog
from retoma.engine.rules.job import Claim, Memory
from retoma.engine.run.attempt import NOTHING, Attempt
from retoma.engine.run.attempt_services import DICE
from retoma.engine.run.claim_cursor import ClaimRequest, Gates, QueueCursor, StartHints
from retoma.engine.run.runner_services import RunnerServices
from retoma.engine.run.running_jobs import RunningJobs
from retoma.engine.run.signals import Signals
from retoma.engine.run.tolerated import Tolerated
from retoma.engine.store import Found, pauses
from retoma.engine.store.pauses import Known

AFTER_AN_ERROR = 0.1  # seconds


class Claims:
    """Of one runner instance."""

    def __init__(
        self,
        *,
        kinds: Kinds,
        knows: Sequence[str],
        cursor: QueueCursor,
        signals: Signals,
        jobs: RunningJobs,
        services: RunnerServices,
        duties: Duties,
        watchdog: Watchdog,
    ) -> None:
        self._kinds = kinds
        self._cursor = cursor
        self._signals = signals
        self._jobs = jobs
        self._services = services
        self._duties = duties
        self._watchdog = watchdog
        self._database: Database = services.database
        self._clock = services.clock
        self._instance = services.instance
        self._hints = StartHints(self._clock, self._database.dialect == "postgres")
        self._gates = Gates()
        self._pauses = Known()
        self._holding = kinds.holding_by_queue()
        self.holds = kinds.holding()
        self.queues: Sequence[str] = kinds.queues()
        self.knows = knows
        self.pauses_changed = False  # and were not read since
        self.answer_lost = False  # a claim may have been committed though no answer came
        # Held while a claim is made and started: else its jobs would be taken for unknown.
        self.lock = asyncio.Lock()

    # — what wakes us —

    def wake(self, topic: str) -> None:
        """A wake-up came: of a queue, or of anything."""
        if topic in self.queues:
            self._hints.forget_queue(topic)
            self._signals.look(topic)
        else:
            self._hints.forget()
            self._signals.look()

    def woken(self) -> list[str]:
        """The queues in which something arrived since the last claim began."""
        return self._cursor.woken()

    def wake_all(self) -> None:
        self._cursor.wake_all()

    def see_pauses(self, change: str) -> None:
        """Note whether pauses have changed since they were read."""
        self.pauses_changed |= change != self._pauses.change

    async def read_pauses(self) -> bool:
        """Claim from now on what is not paused; whether an answer came."""
        with self._tolerated("pauses"):
            self._pauses = await self._database.read(pauses.known, patience=0)
            self.queues, self.knows = self._kinds.but(self._pauses.queues, self._pauses.kinds)
            self._cursor.know(self.queues)
            self._hints.forget()
            self.pauses_changed = False
            return True
        await self._clock.sleep(AFTER_AN_ERROR)
        return False

    # — claiming —

    async def claim(self, free: int, *, sweep: bool, promote: bool) -> Found | None:
        """Claim what waits, in a sweep also what the lost left; None: no answer came."""
        ask = self._asking(free, sweep=sweep, promote=promote)
        with self._tolerated("claim"):
            if self.answer_lost:
                await self.start_unknown()
            found = await self._database.write(
                ask, verb="tick" if sweep else "claim", lane=Lane.CLAIM, patience=0
            )
            crashpoint("runner.claimed")
            await self.start(found.claims)
            short = found.gated or len(found.claims) < free
            if self._hints.claimed(found.claims, short=short):
                self._signals.notified = (
                    True  # nothing has looked at what stands before the hint
                )
            elif self._cursor.claimed(found, free):
                self._signals.notified = True  # other queues may fill the slots that are left
            self._gates.met(found, free)
            if sweep:
                self._duties.took()
                await self._watchdog.take_back_the_rest()
            self.pauses_changed |= found.unheard
            return found
        self.answer_lost = True
        await self._clock.sleep(AFTER_AN_ERROR)
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
            boot=self._instance,
            queues=self.queues,
            choice=choice,
            after={queue: self._hints.after(queue) for queue in choice.queues},
            holding=self._holding,
            knows=self.knows,
            free=free,
            suspects=int(self._jobs.suspect is None and free > 0),
            promote=promote,
            pauses=self._pauses.change,
            meet=meet,
            holds=self.holds,
            # Only where it is thrown: how often is asked must not change what chance says (E23).
            dice=self._services.rng.randrange(1, DICE) if self.holds else 1,
        )

        def ask(tx: Transaction) -> Found:
            if sweep:
                self._duties.take(tx)
                self._watchdog.recover(tx)
                store.open_gates(tx)
            return request.claim(tx)

        return ask

    async def until_due(self, queues: list[str]) -> float:
        """Seconds until something scheduled in these queues is due."""
        await self._clock.give_way()  # what has just been claimed begins first
        due = None
        with self._tolerated("due"):
            due = await self._database.read(lambda tx: store.next_due(tx, queues), patience=0)
        return NEVER if due is None else due

    # — claims whose answer was lost —

    async def start_unknown(self) -> None:
        """Start the jobs of a claim whose answer was lost, or that could not be started then."""
        async with self.lock:
            # Before the read: a claim that gets lost meanwhile is looked for again.
            self.answer_lost = False
            try:
                await self.start(await self._unknown())
            except BaseException:
                self.answer_lost = True
                raise

    async def give_back_unknown(self) -> None:
        """What a claim without an answer has taken is no longer for this instance to run."""
        if self.answer_lost:
            with self._tolerated("claim"):
                # What is being claimed just now is started, not given back.
                async with self.lock:
                    for claim in await self._unknown():
                        self._jobs.give_back(claim)

    async def _unknown(self) -> list[Claim]:
        """Claims that the database has and this instance has never started. None is made meanwhile."""
        # From before the read: what is settled during it was ours when the database looked.
        started = self._jobs.known()
        held = await self._database.read(
            lambda tx: store.recall_jobs(tx, self._instance), patience=0
        )
        return [claim for claim in held if claim.held not in started]

    # — starting —

    async def start(self, claims: list[Claim]) -> None:
        if not claims:
            return
        memories = await self._memories_of(claims)
        parents = {} if self._services.traces is None else await self._parents_of(claims)
        for claim in claims:
            kind = self._kinds.tagged(claim.kind, claim.version)
            memory = memories.get(claim.job, NOTHING)
            attempt = Attempt(claim, kind, self._services, memory)
            self._jobs.start(attempt, parents.get(claim.job))

    async def _parents_of(self, claims: list[Claim]) -> dict[int, str]:
        """Not with the claim itself: without traces it costs nothing."""
        jobs = [claim.job for claim in claims]
        return await self._database.read(lambda tx: store.traceparents(tx, jobs))

    async def _memories_of(self, claims: list[Claim]) -> dict[int, Memory]:
        """Only jobs that have reached something can have steps."""
        begun = [claim for claim in claims if claim.checkpoint is not None]
        if not begun:
            return {}
        return await self._database.read(lambda tx: store.load_steps(tx, begun))

    def _tolerated(self, at: str) -> Tolerated:
        return Tolerated(self._instance, self._services.trouble, at)
