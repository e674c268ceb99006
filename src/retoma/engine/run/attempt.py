"""One claim of one job, from its handler's first line to its settling.

A runner instance owns its attempts, an attempt owns its context and the services that the context uses, and
neither of those knows the attempt: what is to stop it, they ask its owner by the claim.
"""

import asyncio
from typing import Any, cast

from structlog.contextvars import bind_contextvars

from retoma.codec import Unstorable, encode
from retoma.db import BadRow, crashpoint
from retoma.engine import store
from retoma.engine.handlers.context import Context
from retoma.engine.handlers.kinds import Kind
from retoma.engine.rules import duration, settlement
from retoma.engine.rules.cost import Bill
from retoma.engine.rules.errors import LeaseLost
from retoma.engine.rules.events import EventType
from retoma.engine.rules.job import Claim, Memory
from retoma.engine.rules.outcome import Snooze, Unwound
from retoma.engine.rules.settlement import Settlement
from retoma.engine.rules.states import ParkReason, State
from retoma.engine.run.attempt_log import AttemptLog
from retoma.engine.run.attempt_services import PAUSE, AttemptServices
from retoma.engine.run.endings import Endings
from retoma.engine.run.error_details import MESSAGE, STACK, is_trouble, leaves, printable
from retoma.engine.run.runner_services import RunnerServices
from retoma.engine.run.stop_request import StopRequest, Why
from retoma.engine.traces import TRACES, Side, Traces
from retoma.words import say

KEPT = 1024 * 1024  # bytes of a result that could not be stored
NOTHING = Memory([], 0.0, canceling=False)
LEAVES_NOTHING = (State.DONE, State.SKIPPED, State.DEAD)  # ends, with no work left elsewhere


class Attempt:
    """Runs the handler and settles its end, exactly once."""

    __slots__ = (
        "_begun",
        "_bill",
        "_context",
        "_end",
        "_endings",
        "_kind",
        "_log",
        "_memory",
        "_over",
        "_runner",
        "_services",
        "_stop",
        "claim",
        "held",
        "task",
    )

    def __init__(
        self, claim: Claim, kind: Kind, runner: RunnerServices, memory: Memory = NOTHING
    ) -> None:
        self.claim = claim
        self.held = claim.held
        self._kind = kind
        self._runner = runner
        self._memory = memory
        self._stop = StopRequest()
        self._log = AttemptLog(claim, kind, runner)
        self._endings = Endings(claim, kind, runner.rng, self._log, self._stop)
        self._services = AttemptServices(claim, self.held, kind, runner, self._stop)
        self._context: Context | None = None
        self._begun = False
        self._over = False  # its end is handed in, or it is no longer ours to end
        self._bill: Bill | None = None  # what is written down with its settling
        self._end: Settlement = settlement.RELEASED
        self.task: asyncio.Task[None] | None = None

    def start(self, parent: str | None = None) -> "asyncio.Task[None]":
        """`parent`: the span under which it was submitted."""
        traces = self._runner.traces
        run = self._run() if traces is None else self._traced(traces, parent)
        self.task = self._runner.loop.create_task(run)
        return self.task

    async def _traced(self, traces: Traces, parent: str | None) -> None:
        claim = self.claim
        TRACES.set(traces)  # of this task alone
        with traces.span(
            f"claim {claim.kind}",
            Side.CONSUMER,
            parent=parent,
            job=claim.job,
            kind=claim.kind,
            batch=claim.batch,
            epoch=claim.epoch,
            runner=self._runner.instance,
            correlation=claim.correlation,
        ) as span:
            await self._run()
            end = self._end
            given_up = end is settlement.RELEASED and self._stop.why is not Why.RELEASE
            span.tell(end="lost" if given_up else str(end.event))
            if end.event in (EventType.FAILED, EventType.BURIED):
                span.fail(end.code or "")

    # — stopped from outside —

    def stop(self, why: Why, late: str = "") -> None:
        """End it from outside; the result of a step that has already finished is still saved."""
        if self._stop.why is None and self.task is not None:
            self._stop.why = why
            self._stop.late = late or self._stop.late
            if self._begun:  # else it finds out in its first line
                self.task.cancel()
                if not self._over:
                    loop = asyncio.get_running_loop()
                    loop.call_later(self._runner.let_go, self.abandon)

    def cancel(self) -> None:
        """A person wants the job canceled. An attempt that has read so when it began is having its
        remote work stopped, which must not be cut off."""
        if not (self._memory.canceling and self._holds_remote_work()):
            self.stop(Why.CANCEL)

    def overdue(self, late: str) -> None:
        """A step of it is past its time and does not let go: it ends without it."""
        if self._stop.why is None:
            self._stop.why, self._stop.late = Why.TIMEOUT, late
            self.abandon()

    def abandon(self) -> None:
        """Its handler does not let go: it ends without it, and whatever that still does is fenced."""
        if self._over or self.task is None:
            return
        left = asyncio.CancelledError("it did not let go and was abandoned")
        stack = self._stack()
        left.add_note(f"it stands here:\n{stack}")
        end = self._stopped(left)
        if self._context is not None:
            self._context.close()
        self._log.bind("abandoned").error("attempt.abandoned", why=self._stop.why, stack=stack)
        self._runner.owner.abandon(self.task)
        try:
            self._finish(end)
        except BaseException as error:
            self._ended(error)
            raise

    def _time_is_up(self, why: Why) -> None:
        if self._runner.isolate.busy(self.held):
            # Once it is stopped its child is killed, and can no longer say where it was.
            self._runner.owner.run_beside(self._look_and_stop(why))
        else:
            self.stop(why)

    async def _look_and_stop(self, why: Why) -> None:
        self._endings.seen = await self._children()
        if not self._over:
            self.stop(why)

    async def _children(self) -> dict[str, object]:
        """Where its children stand, as details of an event."""
        stacks = await self._runner.isolate.stacks(self.held)
        return {"child_stack": printable("\n".join(stacks), STACK)} if stacks else {}

    # — the handler —

    async def _run(self) -> None:
        """Run the handler and hand in how it ended; the writer's answer comes to `set_result`."""
        self._begun = True
        try:
            try:
                end = await self._run_handler()
                if self._context is not None and self._context.may_have_remote_work():
                    end = await self._nothing_left_behind(end, self._context)
            except Exception as error:  # noqa: BLE001 — settled below
                # Ours, not the handler's. It must end all the same, and within its budget.
                self._log.bind(State.RUNNING).exception("attempt.broke")
                end = self._endings.failed(error, remote_work=self._holds_remote_work())
            if not self._over:  # else it was abandoned
                self._finish(end)
        except BaseException as error:
            self._ended(error)
            raise

    async def _run_handler(self) -> Settlement | None:
        """The handler's end, whatever it is; None where the job is no longer ours."""
        if self._stop.why is not None:
            return self._stopped(asyncio.CancelledError())  # before its first line
        try:
            return await self._call_handler()
        except Unwound as unwound:
            return self._endings.unwound(unwound)
        except asyncio.CancelledError as error:
            return self._left() or self._stopped(error)
        except LeaseLost:
            return None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 — SystemExit in a handler is its own failure
            return await self._raised(error)
        finally:
            if self._context is not None and self._context.close():
                await self._join_side_tasks(self._context)

    async def _call_handler(self) -> Settlement:
        claim, kind = self.claim, self._kind
        if claim.time_left is not None and claim.time_left <= 0:
            return self._endings.out_of_time(remote_work=self._holds_remote_work())
        context, payload = self._opened()
        if crashpoint.live:
            crashpoint("attempt.before_story")
        if kind.timeout is None and claim.time_left is None:
            value = await kind.story(context, payload)
        else:
            value = await self._in_time(context, payload)
        return self._left() or self._endings.returned(value)

    async def _join_side_tasks(self, context: Context) -> None:
        for task in await context.join_side_tasks(self._runner.let_go):
            self._runner.owner.abandon(task)

    def _opened(self) -> tuple[Context, Any]:
        """What the handler is given."""
        claim, kind, runner = self.claim, self._kind, self._runner
        payload = kind.payload(claim.payload)
        context = self._context = Context(
            claim,
            self._services,
            runner.isolate,
            self._memory,
            self.task,
            runner.database_id,
            runner.traces,
        )
        if claim.correlation is not None:
            # Lines that other code writes on this job's behalf name its request too.
            bind_contextvars(job=claim.job, correlation=claim.correlation)
        if kind.log_fields is not None:
            bind_contextvars(**self._log.kind_fields())
        return context, payload

    async def _in_time(self, context: Context, payload: Any) -> Any:
        timeout, left = self._kind.timeout, self.claim.time_left
        loop = asyncio.get_running_loop()
        if timeout is None or (left is not None and left <= timeout):
            timer = loop.call_later(
                min(left or 0.0, duration.LONGEST), self._time_is_up, Why.DEADLINE
            )
        else:
            self._stop.late = say("the attempt took longer than {seconds:g} s", seconds=timeout)
            timer = loop.call_later(timeout, self._time_is_up, Why.TIMEOUT)
        try:
            return await self._kind.story(context, payload)
        finally:
            timer.cancel()

    async def _raised(self, error: BaseException) -> Settlement | None:
        """How it ends where the handler raised."""
        if (left := self._left(error)) is not None:
            return left
        # What it raises because it was stopped is not its own failure.
        if self._stop.why is not None:
            return self._stopped(error)
        if self._over:
            return None
        if isinstance(error, Unstorable):
            try:
                await self._keep_unstorable(error)
            except LeaseLost:
                return None
        trouble = self._endings.troubled(error) if is_trouble(error) else None
        return trouble or self._endings.failed(error, remote_work=self._holds_remote_work())

    def _left(self, error: BaseException | None = None) -> Settlement | None:
        """How it ends where its handler was left because every branch of it waits."""
        if self._stop.why is None and self._context is not None:
            left = self._context.left
            if left is not None:
                return self._endings.returned(left)
        if not isinstance(error, BaseExceptionGroup):
            return None
        unwound = error.subgroup(Unwound)
        if unwound is None or len(leaves(error)) > len(leaves(unwound)):
            return None
        return self._endings.unwound(cast("Unwound", leaves(unwound)[0]))

    def _stopped(self, error: BaseException) -> Settlement | None:
        if self._over:
            return None  # it was abandoned, and its end handed in, before it let go
        return self._endings.stopped(error, remote_work=self._holds_remote_work())

    # — remote work that it started —

    def _holds_remote_work(self) -> bool:
        if self._context is not None:
            return self._context.holds_remote_work()
        return any(step.live_elsewhere for step in self._memory.steps)

    async def _nothing_left_behind(
        self, end: Settlement | None, context: Context
    ) -> Settlement | None:
        """No end leaves remote work behind that no attempt would ask after: that is stopped first,
        and seen to be over; until then the job waits, and its handler is run again."""
        if end is None or self._over:
            return end
        try:
            if end.state is State.PARKED and end.reason != ParkReason.UNKNOWN_REMOTE:
                await context.forget_failures()
            if end.state not in LEAVES_NOTHING or not context.holds_remote_work():
                return end
            waits = await context.stop_remote_work()
        except LeaseLost:
            return None
        except asyncio.CancelledError as error:
            return self._stopped(error)
        if isinstance(waits, Snooze):
            return settlement.snoozed(waits.after)
        if waits is not None:
            return self._endings.left_to_a_person(end)
        self._log.bind(end.state).info("job.remote_stopped", end=end.event, code=end.code)
        return end

    # — settling —

    def _finish(self, end: Settlement | None) -> None:
        self._over = True
        if end is not None and end.state in LEAVES_NOTHING and self._holds_remote_work():
            end = self._endings.left_to_a_person(end)
        # Its slot is free from here on: the next job is claimed while this one is settled.
        self._runner.owner.handler_ended(self.held)
        if end is None or self._stop.why is Why.LOST:
            self._ended(None)
        else:
            self._hand_in(end)

    def _hand_in(self, end: Settlement) -> None:
        if crashpoint.live:
            crashpoint("attempt.before_settle")
        if end.state in (State.WAITING, State.PARKED) and self._holds_remote_work():
            end = end._replace(stopping=True)
        self._end = end
        if self._context is not None and self._bill is None:
            self._bill = self._context.last_bill()
        self._services.release_items()
        claim = self.claim
        self._runner.writer.settle(
            self.held, claim.kind, end, self, claim.limit_key, self._bill
        )

    def _ended(self, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, asyncio.CancelledError):
            self._log.bind("broken").error("attempt.broke", exc_info=error)
        self._runner.owner.ended(self.held, error)

    # — what the writer answers: it takes us for the future of our settling, which spares one —

    def done(self) -> bool:
        return False  # each settling is answered once

    def set_result(self, state: State) -> None:
        self._log.settled(state)
        self._ended(None)
        if state is State.WAITING:
            self._runner.owner.look(self.claim.queue)  # it may be due before the next tick

    def set_exception(self, error: BaseException) -> None:
        if isinstance(error, LeaseLost):
            self._log.bind("lost").warning("job.settle_refused", end=self._end.event)
            self._ended(None)
        else:
            self.task = asyncio.get_running_loop().create_task(self._settle_after_all(error))

    async def _settle_after_all(self, error: BaseException) -> None:
        """The job is still ours and must end: no other runner takes it up."""
        end = self._end
        if isinstance(error, BadRow) and end.code == "unstorable_result":
            self._ended(error)
            return
        try:
            if isinstance(error, BadRow):
                end = await self._unstorable_after_all(end, error)
            else:
                self._log.bind(State.RUNNING).error(
                    "job.settle_failed", end=end.event, exc_info=error
                )
                await self._runner.clock.sleep(PAUSE)
            self._hand_in(end)
        except LeaseLost:
            self._ended(None)
        except BaseException as broken:
            self._ended(broken)
            raise

    async def _unstorable_after_all(self, end: Settlement, error: BadRow) -> Settlement:
        """The database refused what the codec had let pass: keep the bytes, and park the job."""
        await self._services.keep_result((end.result or "").encode(), "application/json")
        why = printable(str(error), MESSAGE)
        return settlement.parked(why, ParkReason.UNSTORABLE, "unstorable_result")

    async def _keep_unstorable(self, error: Unstorable) -> None:
        await self._services.keep_result(error.content()[:KEPT], "text/plain")

    # — silence —

    @property
    def stall(self) -> float | None:
        """Seconds it may go without saving a step or reporting progress."""
        return self._kind.stall

    @property
    def moves(self) -> int:
        """How many steps it has saved, and how often it has reported."""
        return self._services.moves

    async def tell_stalled(self, silent: float, *, stop: bool) -> None:
        """Put where it stands into its timeline; end it there if that is wished."""
        moves, held, instance = self.moves, self.held, self._runner.instance
        late = say(
            "no step was saved and no progress reported for {seconds:g} s", seconds=silent
        )
        where = {"stack": printable(self._stack(), STACK), **await self._children()}
        if self._over or moves != self.moves:
            return
        details = encode({"message": late, **where})
        if not await self._runner.database.write(
            lambda tx: store.tell_stalled(tx, instance, held, details), verb="stalled"
        ):
            return
        self._log.bind("stalled").warning("job.stalled", message=late)
        if stop and moves == self.moves:
            self._endings.seen = where
            self.stop(Why.STALLED, late)

    def _stack(self) -> str:
        return "" if self._context is None else self._context.stack()
