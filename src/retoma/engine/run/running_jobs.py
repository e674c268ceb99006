"""The attempts of one runner instance: which run, which are on their way back, which are abandoned."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from retoma.engine.isolation.isolate import Isolate
from retoma.engine.log import get_logger
from retoma.engine.rules import settlement
from retoma.engine.rules.errors import LeaseLost
from retoma.engine.rules.job import Claim, Held
from retoma.engine.rules.states import State
from retoma.engine.run.attempt import Attempt
from retoma.engine.run.attempt_services import EVIDENCE
from retoma.engine.run.signals import Signals
from retoma.engine.run.stop_request import Why
from retoma.engine.writing.database_health import Trouble
from retoma.engine.writing.group_writer import WRITE, Writer

LOOK = 1.0  # seconds between two looks whether what runs has ended
NO_ANSWER = 1.0  # seconds until a database that did not answer is asked again
ABANDONED = 10  # handlers and threads that did not let go: with more the instance is worn out

log = get_logger("retoma.runner")


class RunningJobs:
    """Owns the attempts by their claims."""

    def __init__(
        self,
        *,
        instance: str,
        slots: int,
        signals: Signals,
        writer: Writer,
        trouble: Trouble,
        isolate: Isolate,
        until_idle: bool,
    ) -> None:
        self._instance = instance
        self._slots = slots
        self._signals = signals
        self._writer = writer
        self._trouble = trouble
        self._isolate = isolate
        self._until_idle = until_idle
        self.on_started: Callable[[], None] | None = None
        self.on_ended: Callable[[Held], None] | None = None
        self._loop = asyncio.get_running_loop()
        self._attempts: dict[Held, Attempt] = {}  # until they are settled
        self._in_handler: set[Held] = set()  # those whose handler has not ended
        self._returning: set[Held] = set()  # broken attempts whose jobs are being given back
        self._abandoned: set[asyncio.Task[Any]] = set()
        self._beside: set[asyncio.Task[None]] = set()
        self.suspect: Held | None = (
            None  # runs alone: the last one like it may have killed a runner
        )
        self.worn = False  # too much is abandoned: this instance leaves, another one begins

    def __bool__(self) -> bool:
        return bool(self._attempts)

    def __len__(self) -> int:
        return len(self._attempts)

    def attempts(self) -> list[Attempt]:
        return [*self._attempts.values()]

    def known(self) -> set[Held]:
        """Claims that were started here, or are being given back."""
        return self._attempts.keys() | self._returning

    def free(self) -> int:
        """Slots without a handler; fewer while settling lags so far behind that they fill twice, and
        none while there is no room: what ends meanwhile could not be settled either."""
        if self._trouble.at(WRITE) or self._trouble.at(EVIDENCE):
            return 0
        return min(self._slots - len(self._in_handler), 2 * self._slots - len(self._attempts))

    def start(self, attempt: Attempt, parent: str | None) -> None:
        held = attempt.held
        if self.on_started is not None:
            self.on_started()
        self._attempts[held] = attempt
        self._in_handler.add(held)
        if attempt.claim.suspect:
            self.suspect = held
        attempt.start(parent)

    # — what attempts ask of their owner —

    def look(self, queue: str | None = None) -> None:
        self._signals.look(queue)

    def handler_ended(self, held: Held) -> None:
        self._in_handler.discard(held)
        if self._signals.free_slot_wakes:
            self._signals.wake.set()

    def ended(self, held: Held, error: BaseException | None) -> None:
        attempt = self._attempts.pop(held, None)
        self._in_handler.discard(held)
        if self.suspect == held:
            self.suspect = None
            self._signals.look()
        if self._until_idle and not self._attempts:
            self._signals.notified = True
        if self._signals.free_slot_wakes or self._signals.notified:
            self._signals.wake.set()
        if error is not None and attempt is not None:
            self.give_back(attempt.claim)  # it was never settled
        if self.on_ended is not None:
            self.on_ended(held)

    def abandon(self, task: "asyncio.Task[Any]") -> None:
        """Only the end of this process will end it."""
        self._abandoned.add(task)
        task.add_done_callback(self._abandoned.discard)
        # Else closing the loop waits for it, for ever.
        asyncio._unregister_task(task)  # noqa: SLF001 — documented, for those who extend asyncio
        left = len(self._abandoned) + self._isolate.deserted
        if left > ABANDONED and not self.worn:
            log.error("runner.worn", runner=self._instance, abandoned=left)
            self.worn = True
            self._signals.wake.set()

    def run_beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def stop(self, held: Held, why: Why) -> None:
        attempt = self._attempts.get(held)
        if attempt is not None:
            attempt.stop(why)

    def cancel(self, held: Held) -> None:
        attempt = self._attempts.get(held)
        if attempt is not None:
            attempt.cancel()

    def overdue(self, held: Held, late: str) -> None:
        attempt = self._attempts.get(held)
        if attempt is not None:
            attempt.overdue(late)

    # — what the runner does with all of them —

    @property
    def busy_beside(self) -> bool:
        return bool(self._beside)

    def give_back(self, claim: Claim) -> None:
        """Let a job wait again, at no cost. It is never started again under the same epoch: what its
        broken attempt still saves would be done twice."""
        # Until it is written, the database says that it is ours.
        self._returning.add(claim.held)
        answer: asyncio.Future[State] = self._loop.create_future()
        answer.add_done_callback(lambda done: self._given_back(claim, done))
        self._writer.settle(
            claim.held, claim.kind, settlement.RELEASED, answer, claim.limit_key
        )

    def _given_back(self, claim: Claim, answer: "asyncio.Future[State]") -> None:
        error = answer.exception()
        if error is not None and not isinstance(error, LeaseLost):
            log.error("runner.give_back_failed", job=claim.job, exc_info=error)
            self._loop.call_later(NO_ANSWER, self.give_back, claim)
            return
        self._returning.discard(claim.held)
        if error is None:
            self._signals.look(claim.queue)

    def request_stop(self, why: Why) -> None:
        for attempt in self.attempts():
            attempt.stop(why)

    async def stop_all(self, why: Why, let_go: float) -> None:
        """Stop every attempt, and abandon those that have not ended after so many seconds."""
        self.request_stop(why)
        await self.wait(let_go)
        for attempt in self.attempts():
            attempt.abandon()

    async def wait(self, seconds: float) -> None:
        """Until every handler has ended; one that is abandoned meanwhile is not waited for."""
        until = self._loop.time() + seconds
        while (left := until - self._loop.time()) > 0:
            tasks = [
                attempt.task
                for attempt in self._attempts.values()
                if attempt.task is not None and attempt.task not in self._abandoned
            ]
            if all(task.done() for task in tasks):
                return
            await asyncio.wait(tasks, timeout=min(left, LOOK))

    async def stop_beside(self) -> None:
        for task in self._beside:
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)
