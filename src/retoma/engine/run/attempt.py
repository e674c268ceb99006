"""One claim of one job, from its story's first line to its settling."""

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from enum import StrEnum
from random import Random
from types import MappingProxyType
from typing import Any, assert_never, cast

from structlog.contextvars import bind_contextvars

from retoma.codec import Unstorable, decode, encode
from retoma.db import Away, BadRow, Busy, Database, Full, Interrupted, crashpoint
from retoma.engine import store
from retoma.engine.costs.budgets import Budgets
from retoma.engine.handlers.context import Context
from retoma.engine.handlers.kinds import Kind
from retoma.engine.isolation.isolate import ChildDied, Isolate, Limits
from retoma.engine.limits.breakers import Breakers, Guard
from retoma.engine.limits.rates import Permit, Rates
from retoma.engine.log import get_logger
from retoma.engine.ports import Clock
from retoma.engine.rules import duration, settlement
from retoma.engine.rules.cost import Bill, Offer, Payer
from retoma.engine.rules.errors import LeaseLost, Transient
from retoma.engine.rules.events import EventType
from retoma.engine.rules.gates import pool_gate
from retoma.engine.rules.job import RELEASES, Claim, Held, Item, Memory, Scope, StepId
from retoma.engine.rules.outcome import Aside, Outcome, Park, Skip, Snooze, Unwound
from retoma.engine.rules.pool_items import Freeing, Taking
from retoma.engine.rules.retry import Again, GiveUp, Hold, code_of, decide
from retoma.engine.rules.settlement import Settlement
from retoma.engine.rules.states import DeadReason, ParkReason, State, StepState
from retoma.engine.run.byte_budget import ByteBudget
from retoma.engine.run.heartbeat import Heartbeat
from retoma.engine.run.shared_writes import Part, Shared, Shares, Unwanted
from retoma.engine.run.step_transaction import Effects
from retoma.engine.run.submit_spans import SubmitSpans
from retoma.engine.run.transaction import Transaction
from retoma.engine.store import Evidence
from retoma.engine.store.reuse import Found
from retoma.engine.traces import TRACES, Side, Traces
from retoma.engine.writing.database_health import Trouble
from retoma.engine.writing.evidence import Keeper
from retoma.engine.writing.group_writer import Answer, Writer
from retoma.secret import LONGEST, redact_text
from retoma.words import say

MESSAGE = 2_000  # characters of an error that go into the timeline
STACK = 8_000
KEPT = 1024 * 1024  # bytes of a result that could not be stored
EVIDENCE = "evidence"  # where trouble is met
NO_FIELDS: Mapping[str, Any] = MappingProxyType({})
NOTHING = Memory([], 0.0, canceling=False)
DICE = 1_000_003  # sides
COPIES = 2  # of a saved value while it is read back: as its text, and as the handler gets it
LEAVES_NOTHING = (State.DONE, State.SKIPPED, State.DEAD)  # ends, with no work left elsewhere
PAUSE = 0.5  # seconds between looks whether the lease is good, or room there, again

log = get_logger("retoma.attempt")


class Why(StrEnum):
    """Why an attempt was stopped from outside."""

    CANCEL = "cancel"
    RELEASE = "release"
    LOST = "lost"
    TIMEOUT = "timeout"
    DEADLINE = "deadline"
    STALLED = "stalled"


class Tools:
    """What every attempt of one boot shares."""

    __slots__ = (
        "abandoned",
        "beside",
        "boot",
        "breakers",
        "budgets",
        "clock",
        "database",
        "database_id",
        "debugging",
        "effects",
        "ended",
        "heartbeat",
        "isolate",
        "keep_reuse",
        "keeper",
        "let_go",
        "log",
        "look",
        "loop",
        "rates",
        "rng",
        "shared",
        "step_memory",
        "story_over",
        "traces",
        "trouble",
        "writer",
    )

    def __init__(
        self,
        *,
        boot: str,
        database: Database,
        effects: Effects,
        writer: Writer,
        trouble: Trouble,
        heartbeat: Heartbeat,
        isolate: Isolate,
        keeper: Keeper,
        clock: Clock,
        rng: Random,
        let_go: float,
        zone: str,
        step_memory: int,
        keep_reuse: float | None,
        look: Callable[[str], None],
        story_over: Callable[[Held], None],
        ended: Callable[[Held, BaseException | None], None],
        abandoned: Callable[["asyncio.Task[Any]"], None],
        beside: Callable[[Coroutine[Any, Any, None]], None],
        traces: Traces | None = None,
    ) -> None:
        self.boot = boot
        self.breakers = Breakers(database, clock)
        self.budgets = Budgets(database, boot, zone)
        self.keep_reuse = keep_reuse
        self.rates = Rates(database, clock, boot)
        self.step_memory = ByteBudget(step_memory)
        self.database = database
        self.effects = effects
        self.shared = Shared(effects)
        self.database_id = ""  # known once the boot is written
        self.writer = writer
        self.trouble = trouble
        self.heartbeat = heartbeat
        self.isolate = isolate
        self.keeper = keeper
        self.clock = clock
        self.rng = rng
        self.let_go = let_go
        self.look = look
        self.loop = asyncio.get_running_loop()
        self.story_over = story_over
        self.ended = ended
        self.abandoned = abandoned
        self.beside = beside
        self.traces = traces
        self.log = log.bind(runner=boot)  # bound once: a filtered line must cost nothing
        self.debugging = _would_print(self.log, logging.DEBUG)


class Attempt:
    """Runs the story and settles its end, exactly once."""

    __slots__ = (
        "_began",
        "_begun",
        "_bill",
        "_context",
        "_end",
        "_kind",
        "_late",
        "_log_fields",
        "_memory",
        "_over",
        "_reserved",
        "_seen",
        "_things",
        "_took",
        "_tools",
        "_why",
        "claim",
        "held",
        "moves",
        "task",
    )

    def __init__(
        self, claim: Claim, kind: Kind, tools: Tools, memory: Memory = NOTHING
    ) -> None:
        self.claim = claim
        self.held = claim.held
        self._kind = kind
        self._tools = tools
        self._memory = memory
        self._why: Why | None = None
        self._began = tools.clock.now()
        self._begun = False
        self._over = False  # its end is handed in, or nobody's business any more
        self._log_fields: Mapping[str, Any] | None = None  # once somebody has asked
        self._late = ""  # what is told of an attempt that took too long
        self._seen: dict[str, object] | None = None  # where it stood when its time was up
        self.moves = 0  # saves and reports: what keeps it from stalling
        self._context: Context | None = None
        self._things: dict[int, Item] = {}  # held for this attempt alone
        # Not yet handed out.
        self._reserved = {item.pool: item for item in claim.things} if claim.things else {}
        self._took = claim.epoch > 1  # it may have had things before
        self._bill: Bill | None = None  # what is written down with its settling
        self._end: Settlement = settlement.RELEASED
        self.task: asyncio.Task[None] | None = None

    def start(self, parent: str | None = None) -> "asyncio.Task[None]":
        """`parent`: the span under which it was submitted."""
        traces = self._tools.traces
        run = self._run() if traces is None else self._traced(traces, parent)
        self.task = self._tools.loop.create_task(run)
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
            runner=self._tools.boot,
            correlation=claim.correlation,
        ) as span:
            await self._run()
            end = self._end
            given_up = end is settlement.RELEASED and self._why is not Why.RELEASE
            span.tell(end="lost" if given_up else str(end.event))
            if end.event in (EventType.FAILED, EventType.BURIED):
                span.fail(end.code or "")

    def stop(self, why: Why) -> None:
        """End it from outside; what its step has already brought home is still kept."""
        if self._why is None and self.task is not None:
            self._why = why
            if self._begun:  # else it finds out in its first line
                self.task.cancel()
                if not self._over:
                    loop = asyncio.get_running_loop()
                    loop.call_later(self._tools.let_go, self.abandon)

    def abandon(self) -> None:
        """Its story does not let go: it ends without it, and whatever that still does is fenced."""
        if self._over or self.task is None:
            return
        left = asyncio.CancelledError("it did not let go and was abandoned")
        stack = self._stack()
        left.add_note(f"it stands here:\n{stack}")
        end = self._stopped(left)
        if self._context is not None:
            self._context.close()
        self._log("abandoned").error("attempt.abandoned", why=self._why, stack=stack)
        self._tools.abandoned(self.task)
        try:
            self._finish(end)
        except BaseException as error:
            self._ended(error)
            raise

    async def _run(self) -> None:
        """Tell the story and hand in how it ended; the writer's answer comes to `set_result`."""
        self._begun = True
        try:
            try:
                end = await self._told()
                if self._context is not None and self._context.may_have_remote_work():
                    end = await self._nothing_left_behind(end, self._context)
            except Exception as error:  # noqa: BLE001 — settled below
                # Ours, not the story's. It must end all the same, and within its budget.
                self._log(State.RUNNING).exception("attempt.broke")
                end = self._decided(error)
            if not self._over:  # else it was abandoned
                self._finish(end)
        except BaseException as error:
            self._ended(error)
            raise

    def _finish(self, end: Settlement | None) -> None:
        self._over = True
        if end is not None and end.state in LEAVES_NOTHING and self._holds_remote_work():
            end = self._left_to_a_person(end)
        # Its slot is free from here on: the next job is claimed while this one is settled.
        self._tools.story_over(self.held)
        if end is None or self._why is Why.LOST:
            self._ended(None)
        else:
            self._hand_in(end)

    def _ended(self, error: BaseException | None) -> None:
        # It and its context hold each other: kept, they would wait for the garbage collector,
        # which then took a quarter of a runner's time.
        self._context = None
        if error is not None and not isinstance(error, asyncio.CancelledError):
            self._log("broken").error("attempt.broke", exc_info=error)
        self._tools.ended(self.held, error)

    async def _told(self) -> Settlement | None:
        """The story's end, whatever it is; None where the job is no longer ours."""
        claim, kind = self.claim, self._kind
        if self._why is not None:
            return self._stopped(asyncio.CancelledError())  # before its first line
        try:
            if claim.time_left is not None and claim.time_left <= 0:
                return self._out_of_time()
            context, payload = self._opened()
            if crashpoint.live:
                crashpoint("attempt.before_story")
            if kind.timeout is None and claim.time_left is None:
                value = await kind.story(context, payload)
            else:
                value = await self._in_time(context, payload)
            return self._left() or self._succeeded(value)
        except Unwound as unwound:
            return self._unwound(unwound)
        except asyncio.CancelledError as error:
            return self._left() or self._stopped(error)
        except LeaseLost:
            return None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 — SystemExit in a story is its own failure
            if (left := self._left(error)) is not None:
                return left
            # What it raises because it was stopped is not its own failure.
            if self._stopped_from_outside():
                return self._stopped(error)
            return await self._failed(error)
        finally:
            if self._context is not None and self._context.close():
                for task in await self._context.join_side_tasks(self._tools.let_go):
                    self._tools.abandoned(task)

    def _opened(self) -> tuple[Context, Any]:
        """What the story is handed."""
        claim, kind, tools = self.claim, self._kind, self._tools
        payload = kind.payload(claim.payload)
        context = self._context = Context(
            claim,
            self,
            tools.isolate,
            self._memory,
            self.task,
            tools.database_id,
            tools.traces,
        )
        if claim.correlation is not None:
            # What others say on this job's behalf says whose it is, to the last line.
            bind_contextvars(job=claim.job, correlation=claim.correlation)
        if kind.log_fields is not None:
            bind_contextvars(**self._said_besides())
        return context, payload

    async def _in_time(self, context: Context, payload: Any) -> Any:
        timeout, left = self._kind.timeout, self.claim.time_left
        loop = asyncio.get_running_loop()
        if timeout is None or (left is not None and left <= timeout):
            timer = loop.call_later(
                min(left or 0.0, duration.LONGEST), self._time_is_up, Why.DEADLINE
            )
        else:
            self._late = say("the attempt took longer than {seconds:g} s", seconds=timeout)
            timer = loop.call_later(timeout, self._time_is_up, Why.TIMEOUT)
        try:
            return await self._kind.story(context, payload)
        finally:
            timer.cancel()

    def _time_is_up(self, why: Why) -> None:
        if self._tools.isolate.busy(self.held):
            # Once it is stopped its child is killed, and can no longer say where it was.
            self._tools.beside(self._look_and_stop(why))
        else:
            self.stop(why)

    async def _look_and_stop(self, why: Why) -> None:
        self._seen = await self._children()
        if not self._over:
            self.stop(why)

    async def _children(self) -> dict[str, object]:
        """Where its children stand, as details of an event."""
        stacks = await self._tools.isolate.stacks(self.held)
        return {"child_stack": _printable("\n".join(stacks), STACK)} if stacks else {}

    def _out_of_time(self, error: BaseException | None = None) -> Settlement:
        told = {} if error is None else {**_told_of(error), **(self._seen or {})}
        told["message"] = say("the job's deadline has passed")
        return self._given_up(DeadReason.DEADLINE, "deadline", told)

    def _given_up(
        self, reason: DeadReason, code: str, details: dict[str, object]
    ) -> Settlement:
        if not self._holds_remote_work():
            self._log(State.DEAD).error(
                "job.buried", code=code, reason=reason, **_short(details)
            )
        return settlement.buried(reason, code, details)

    # — what it had at work elsewhere —

    def _left(self, error: BaseException | None = None) -> Settlement | None:
        """How it ends where its story was left because every branch of it waits."""
        if self._why is None and self._context is not None and self._context.left is not None:
            return self._succeeded(self._context.left)
        if not isinstance(error, BaseExceptionGroup):
            return None
        unwound = error.subgroup(Unwound)
        if unwound is None or len(_leaves(error)) > len(_leaves(unwound)):
            return None
        return self._unwound(cast("Unwound", _leaves(unwound)[0]))

    def _unwound(self, unwound: Unwound) -> Settlement:
        """The failed call that made it leave stands in the timeline, if it was one."""
        error = unwound.__cause__
        cause: dict[str, object] = {}
        if isinstance(error, Exception):
            cause = {"code": code_of(error), "message": redact_text(str(error))}
        match unwound.outcome:
            case Aside(gate):
                return settlement.set_aside(gate, cause)
            case Snooze(after):
                return settlement.snoozed(after, cause)
            case outcome:
                return self._succeeded(outcome)

    async def _nothing_left_behind(
        self, end: Settlement | None, context: Context
    ) -> Settlement | None:
        """No end leaves work behind that nobody would ask after: that is stopped first, and seen
        to be over; until then the job waits, and its story is told again."""
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
            return self._left_to_a_person(end)
        self._log(end.state).info("job.remote_stopped", end=end.event, code=end.code)
        return end

    def _left_to_a_person(self, end: Settlement) -> Settlement:
        self._log(State.PARKED).warning("job.parked", end=end.event, code=end.code)
        why: str = say(
            "its story ended ({event}) while its remote work may still run", event=end.event
        )
        message = decode(end.details or "null")
        if isinstance(message, dict) and "message" in message:
            why = say("{head}: {tail}", head=why, tail=message["message"])
        return settlement.parked(why, ParkReason.UNKNOWN_REMOTE, end.code)

    def _succeeded(self, value: Any) -> Settlement:
        if not isinstance(value, Outcome):
            return settlement.done(encode(value, self._kind.returns))
        match value:
            case Snooze(after):
                return settlement.snoozed(after)
            case Skip(reason):
                return settlement.skipped(redact_text(reason))
            case Park(reason, kind):
                return settlement.parked(redact_text(reason), kind)
            case unexpected:
                assert_never(unexpected)

    def _stopped_from_outside(self) -> bool:
        return self._why is not None

    def _stopped(self, error: BaseException) -> Settlement | None:
        if self._over:
            return None  # it was abandoned, and its end told, before it let go
        match self._why:
            case Why.LOST:
                return None
            case Why.TIMEOUT:
                return self._decided(_because(TimeoutError(self._late), error))
            case Why.STALLED:
                return self._decided(_because(Transient(self._late, code="stalled"), error))
            case Why.DEADLINE:
                return self._out_of_time(error)
            case Why.CANCEL:
                if self._holds_remote_work():
                    return settlement.snoozed(0)  # taken up again at once, to stop that first
                return settlement.CANCELED
            case Why.RELEASE:
                if self.claim.released < RELEASES:
                    return settlement.RELEASED
                message = say("given back {n} times by runners that were leaving", n=RELEASES)
                return self._given_up(
                    DeadReason.EXHAUSTED, "released_too_often", {"message": message}
                )
            case None:
                return self._decided(error)  # the story cancelled itself: its own failure
            case unexpected:
                assert_never(unexpected)

    async def _failed(self, error: BaseException) -> Settlement | None:
        if self._over:
            return None
        if isinstance(error, Unstorable):
            try:
                await self._keep_unstorable(error)
            except LeaseLost:
                return None
        if _is_trouble(error) and self.claim.released < RELEASES:
            self._log(State.WAITING).warning(
                "job.released", error=_printable(str(error), MESSAGE)
            )
            return settlement.RELEASED
        return self._decided(error)

    def _decided(self, error: BaseException) -> Settlement:
        details = _told_of(error)
        if self._seen:
            details |= self._seen
        match decide(
            failures=self.claim.failures,
            error=error,
            retry=self._kind.retry,
            codes=self._kind.codes,
            rng=self._tools.rng,
        ):
            case Again(after, code):
                told = self._log(State.WAITING)
                told.warning("job.failed", code=code, after=after, **_short(details))
                return settlement.failed(after, code, details)
            case GiveUp(reason, code):
                return self._given_up(reason, code, details)
            case Hold(reason, code):
                told = self._log(State.PARKED)
                told.warning("job.parked", code=code, reason=reason, **_short(details))
                return settlement.parked(str(details["message"]), reason, code)
            case unexpected:
                assert_never(unexpected)

    def _hand_in(self, end: Settlement) -> None:
        if crashpoint.live:
            crashpoint("attempt.before_settle")
        if end.state in (State.WAITING, State.PARKED) and self._holds_remote_work():
            end = end._replace(stopping=True)
        self._end = end
        if self._context is not None and self._bill is None:
            self._bill = self._context.last_bill()
        if self._things or self._reserved:
            self._let_go_of_all()
        claim = self.claim
        self._tools.writer.settle(self.held, claim.kind, end, self, claim.limit_key, self._bill)

    # — what the writer answers: it takes us for the future of our settling, which spares one —

    def done(self) -> bool:
        return False  # each settling is answered once

    def set_result(self, state: State) -> None:
        if self._kind.log_settled is not None:
            ms = (self._tools.clock.now() - self._began) * 1000
            line = self._log(state)
            with suppress(Exception):  # the line itself matters more, and the end most of all
                line = line.bind(**self._kind.log_settled(self.claim.job, state, ms))
            line.info("job.settled")
        elif self._tools.debugging:
            self._log(state).debug("job.settled")
        self._ended(None)
        if state is State.WAITING:
            self._tools.look(self.claim.queue)  # it may be due before the next tick

    def set_exception(self, error: BaseException) -> None:
        if isinstance(error, LeaseLost):
            self._log("lost").warning("job.settle_refused", end=self._end.event)
            self._ended(None)
        else:
            self.task = asyncio.get_running_loop().create_task(self._settle_after_all(error))

    async def _settle_after_all(self, error: BaseException) -> None:
        """The job is still ours and must end: nothing else will take it up."""
        end = self._end
        if isinstance(error, BadRow) and end.code == "unstorable_result":
            self._ended(error)
            return
        try:
            if isinstance(error, BadRow):
                end = await self._unstorable_after_all(end, error)
            else:
                self._log(State.RUNNING).error(
                    "job.settle_failed", end=end.event, exc_info=error
                )
                await self._tools.clock.sleep(PAUSE)
            self._hand_in(end)
        except LeaseLost:
            self._ended(None)
        except BaseException as broken:
            self._ended(broken)
            raise

    def _holds_remote_work(self) -> bool:
        if self._context is not None:
            return self._context.holds_remote_work()
        return any(step.live_elsewhere for step in self._memory.steps)

    async def _unstorable_after_all(self, end: Settlement, error: BadRow) -> Settlement:
        """The database refused what the codec had let pass: keep the bytes, and park the job."""
        await self.attach(Evidence("result", "application/json", (end.result or "").encode()))
        why = _printable(str(error), MESSAGE)
        return settlement.parked(why, ParkReason.UNSTORABLE, "unstorable_result")

    async def _keep_unstorable(self, error: Unstorable) -> None:
        await self.attach(Evidence("result", "text/plain", error.content()[:KEPT]))

    def _log(self, status: str) -> Any:
        """A logger that says everything a line about a job says."""
        besides = self._said_besides()
        told = self._tools.log.bind(**besides) if besides else self._tools.log
        return told.bind(
            **self.claim.log_fields,
            status=str(status),
            duration_ms=round((self._tools.clock.now() - self._began) * 1000, 1),
        )

    def _said_besides(self) -> Mapping[str, Any]:
        """What its kind wants in every line about it; nothing where the payload cannot be read."""
        if self._kind.log_fields is None:
            return NO_FIELDS
        if self._log_fields is None:
            claim = self.claim
            try:
                payload = self._kind.payload(claim.payload)
                self._log_fields = self._kind.log_fields(payload, claim.failures)
            except Exception:  # noqa: BLE001 — the line itself matters more
                self._log_fields = NO_FIELDS
        return self._log_fields

    # — what the context asks for —

    def save(
        self,
        step: StepId,
        value: str | None,
        state: StepState = StepState.SAVED,
        bill: Bill | None = None,
    ) -> Answer:
        self.moves += 1
        return self._tools.writer.save(self.held, self.claim.kind, step, value, state, bill)

    @asynccontextmanager
    async def reading(
        self, steps: Sequence[StepId], size: int
    ) -> AsyncIterator[Mapping[StepId, str]]:
        async with self._tools.step_memory.hold(COPIES * size):
            yield await self._tools.database.read(
                lambda tx: store.load_values(tx, self.claim, steps)
            )

    async def write(self, step: StepId, fn: Callable[[Transaction], Any], type_: Any) -> str:
        self.moves += 1
        spans = SubmitSpans.of(self._tools.traces)
        effects = self._tools.effects
        try:
            effect = await effects.write(self.held, step, fn, type_, spans)
        except LeaseLost:
            await self._tools.writer.refuse(self.claim.kind)
            raise
        if effect.text is None:
            self.cancel_wanted()
            raise asyncio.CancelledError
        return effect.text

    async def share(self, fn: Shares, about: Any, size: int) -> Any:
        self.moves += 1
        part = Part(self.held, about, size, SubmitSpans.of(self._tools.traces))
        try:
            return await self._tools.shared.write(fn, part)
        except LeaseLost:
            await self._tools.writer.refuse(self.claim.kind)
            raise
        except Unwanted:
            self.cancel_wanted()
            raise asyncio.CancelledError from None

    @property
    def payer(self) -> Payer:
        claim = self.claim
        return Payer(claim.job, claim.batch, claim.kind, self._kind.account)

    def pays(self, step: str, provider: str) -> None:
        self._tools.budgets.learn(self.claim.kind, step, provider)

    def paid(self, step: str) -> Iterable[str] | None:
        return self._tools.budgets.paid(self.claim.kind, step)

    async def afford(self, providers: Iterable[str]) -> None:
        await self._tools.budgets.afford(self.payer, providers)

    async def look_up(self, offer: Offer) -> Found | None:
        age = self._tools.keep_reuse
        return await self._tools.database.read(lambda tx: store.reuse.find(tx, offer.hash, age))

    def report(self, progress: float | None, note: str | None) -> Answer:
        self.moves += 1
        return self._tools.writer.report(self.held, self.claim.kind, progress, note)

    async def attach(self, evidence: Evidence) -> None:
        while (kept := await self._attached(evidence)) is None:
            await self._tools.clock.sleep(PAUSE)  # a full disk is not the story's failure
        if not kept:
            await self._tools.writer.refuse(self.claim.kind)
            raise LeaseLost(self.held.job)

    async def _attached(self, evidence: Evidence) -> bool | None:
        """Whether this runner may still write on the job; None while there is no room."""
        held, boot = self.held, self._tools.boot
        try:
            kept = await self._tools.keeper.attach(self._tools.database, boot, held, evidence)
        except Full as error:
            self._tools.trouble.met(EVIDENCE, error)
            return None
        self._tools.trouble.over(EVIDENCE)
        return kept

    def permit(
        self,
        key: str,
        n: int,
        *,
        adaptive: bool,
        working: Callable[[], AbstractContextManager[None]],
    ) -> Permit:
        return self._tools.rates.permit(key, n, adaptive=adaptive, working=working)

    def guard(self, name: str) -> Guard:
        return self._tools.breakers.guard(name, self.held)

    async def take(self, pool: str, scope: Scope, shuns: str | None = None) -> Item:
        """What came with the claim, if it did: for as long, or for longer than the attempt."""
        reserved = self._reserved.get(pool)
        if reserved is not None and scope is reserved.scope:
            self._keep(self._reserved.pop(pool))
            return reserved
        if reserved is not None and reserved.scope is Scope.ATTEMPT:
            return await self._take(pool, scope, keeps=self._reserved.pop(pool))
        return await self._take(pool, scope, shuns=shuns)

    async def _take(
        self, pool: str, scope: Scope, *, keeps: Item | None = None, shuns: str | None = None
    ) -> Item:
        taking = Taking(
            self.held,
            self.claim.generation,
            pool,
            scope,
            dice=self._tools.rng.randrange(1, DICE),
            again=self._took,
            shuns=shuns,
            keeps=keeps,
            has=frozenset(self._things),
        )
        self._took = True
        answer = self._tools.writer.take(self.claim.kind, taking)
        answer.add_done_callback(self._taken)  # also where nobody waits for it any more
        found: Item | None = await answer
        if found is None:
            raise Unwound(Aside(pool_gate(pool)))
        return found

    def _taken(self, answer: "asyncio.Future[Item | None]") -> None:
        item = None if answer.exception() else answer.result()
        if item is not None:
            self._keep(item)

    def _keep(self, item: Item) -> None:
        if item.scope is Scope.ATTEMPT:
            self._things[item.id] = item

    def free(self, item: Item, *, worked: bool | None, by: str | None = None) -> Answer:
        self._things.pop(item.id, None)
        return self._free(Freeing(self.held, item, worked, by, self.claim.kind))

    def _free(self, freeing: Freeing) -> Answer:
        answer = self._tools.writer.free(freeing)
        answer.add_done_callback(_look_at)
        return answer

    def _let_go_of_all(self) -> None:
        """What it holds for the attempt alone, in the transaction that ends it."""
        for item in [*self._things.values()]:
            self.free(item, worked=None)
        for item in self._reserved.values():
            if item.scope is Scope.ATTEMPT:
                self._free(Freeing(self.held, item, kind=self.claim.kind, used=False))
        self._reserved.clear()

    async def pause(self, seconds: float) -> None:
        await self._tools.clock.sleep(duration.seconds(seconds))

    def free_to_start(self) -> bool:
        return self._why is None and self._tools.heartbeat.valid()

    async def may_start(self) -> None:
        if self._why is not None:
            raise asyncio.CancelledError
        while not self._tools.heartbeat.valid():
            await self._tools.clock.sleep(PAUSE)

    @property
    def limits(self) -> Limits:
        return self._kind.limits

    @property
    def let_go(self) -> float:
        return self._tools.let_go

    def overdue(self, late: str) -> None:
        if self._why is None:
            self._why, self._late = Why.TIMEOUT, late
            self.abandon()

    def cancel_wanted(self) -> None:
        self.stop(Why.CANCEL)

    # — silence —

    @property
    def stall(self) -> float | None:
        """Seconds it may go without saving a step or reporting progress."""
        return self._kind.stall

    async def tell_stalled(self, silent: float, *, stop: bool) -> None:
        """Put where it stands into its timeline; end it there if that is wished."""
        moves, held, boot = self.moves, self.held, self._tools.boot
        late = say(
            "no step was saved and no progress reported for {seconds:g} s", seconds=silent
        )
        where = {"stack": _printable(self._stack(), STACK), **await self._children()}
        if self._over or moves != self.moves:
            return
        details = encode({"message": late, **where})
        if not await self._tools.database.write(
            lambda tx: store.tell_stalled(tx, boot, held, details), verb="stalled"
        ):
            return
        self._log("stalled").warning("job.stalled", message=late)
        if stop and moves == self.moves:
            self._late, self._seen = late, where
            self.stop(Why.STALLED)

    def _stack(self) -> str:
        return "" if self._context is None else self._context.stack()


def _look_at(answer: "asyncio.Future[Any]") -> None:
    """A refusal that nobody waits for need not be told as one that was forgotten."""
    answer.exception()


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in _leaves(each)]
    return [error]


def _is_trouble(error: BaseException) -> bool:
    """Whether our own database could not answer: that is no failure of the job."""
    return all(
        isinstance(leaf, Away | Busy | Full)
        and not (isinstance(leaf, Interrupted) and leaf.callers)
        for leaf in _leaves(error)
    )


def _because(told: Exception, error: BaseException) -> Exception:
    told.__cause__ = error
    return told


def _would_print(logger: Any, level: int) -> bool:
    """Whether a line of this level goes anywhere; loggers that cannot tell are asked each time."""
    return bool(getattr(logger, "is_enabled_for", lambda _: True)(level))


def _told_of(error: BaseException) -> dict[str, object]:
    """An error for the timeline: what was raised, what it said, where."""
    stack = "".join(traceback.format_exception(error))
    told: dict[str, object] = {
        "type": type(error).__name__,
        "message": _printable(_said(error), MESSAGE),
        "stack": _printable(redact_text(stack[-LONGEST:])[-STACK:], STACK),
    }
    return {**error.details, **told} if isinstance(error, ChildDied) else told


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 — a story's own exception, which cannot even speak
        return say("its message could not be read")


def _short(details: dict[str, object]) -> dict[str, object]:
    return {"error": details.get("type"), "message": details["message"]}


def _printable(text: str, most: int) -> str:
    """What every database can store and everybody may read, whatever the error had in it."""
    safe = redact_text(text[:LONGEST])[:most]
    return safe.encode("utf-8", "replace").decode().replace("\0", "�")
