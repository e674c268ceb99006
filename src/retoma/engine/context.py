"""What a story may use: steps, durable loops, progress, costs, evidence, a log."""

import asyncio
import inspect
import mimetypes
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar
from functools import lru_cache, partial
from types import FunctionType
from typing import Any, Never, Protocol, TypeVar, cast, get_type_hints, overload

import structlog

from retoma.codec import Undecodable, Unstorable, decode, encode
from retoma.db import BadRow, crashpoint
from retoma.engine import stacks
from retoma.engine.branches import Branches, first_due
from retoma.engine.breaker import Guard
from retoma.engine.cost import Bill, Offer, Payer, charge, read_charges
from retoma.engine.errors import BadInput, LeaseLost, Permanent, Transient
from retoma.engine.isolate import NO_LIMITS, Isolate, Limits, check_can_travel
from retoma.engine.job import REMOTE, Claim, Item, Memory, SavedStep, Scope, StepId
from retoma.engine.outcome import Happened, Park, Snooze, Unknown, Unwound
from retoma.engine.pool import Use
from retoma.engine.purse import Purse
from retoma.engine.remote import Call, Remote
from retoma.engine.states import ParkReason, StepState
from retoma.engine.store import Evidence
from retoma.engine.store.reuse import Found, offer_of
from retoma.engine.traces import Traces
from retoma.engine.writer import Answer
from retoma.secret import redact_text
from retoma.words import say

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 8  # items of a durable loop in flight
NOTE = 500  # characters of what several pieces of remote work tell
# The step that is being worked on here: what it costs is written with it.
_AT: ContextVar[StepId | None] = ContextVar("retoma_step", default=None)


class Desk(Protocol):
    """What the attempt does for its context."""

    def save(
        self,
        step: StepId,
        value: str | None,
        state: StepState = StepState.SAVED,
        bill: Bill | None = None,
    ) -> Answer: ...
    async def write(self, step: StepId, fn: Callable[[Any], Any]) -> str:
        """Do it in a transaction of the database that also keeps the step."""

    async def share(
        self, fn: Callable[[Any, Sequence[Any]], Any], about: Any, size: int
    ) -> Any:
        """Do it in a transaction of the database together with others' of this moment."""

    def pays(self, step: str, provider: str) -> None: ...
    def paid(self, step: str) -> Iterable[str] | None:
        """Whom this step has been seen to pay."""

    async def afford(self, providers: Iterable[str]) -> None:
        """Return if no budget is spent that these would be paid from."""

    async def look_up(self, offer: Offer) -> Found | None:
        """What another job has made of the same."""

    @property
    def payer(self) -> Payer:
        """Under what names costs are counted."""

    def report(self, progress: float | None, note: str | None) -> Answer: ...
    async def attach(self, evidence: Evidence) -> None: ...
    async def spend(self, key: str, n: int) -> None: ...
    def guard(self, name: str) -> Guard: ...
    async def take(self, pool: str, scope: Scope, shuns: str | None = None) -> Item: ...
    def free(self, item: Item, *, worked: bool | None, by: str | None = None) -> Answer: ...
    def free_to_start(self) -> bool:
        """Whether something may be started under this lease, now."""

    async def may_start(self) -> None:
        """Return when something may be started under this lease; raise when never again."""

    async def pause(self, seconds: float) -> None: ...

    @property
    def limits(self) -> Limits:
        """What a child of this kind may use."""

    @property
    def let_go(self) -> float:
        """Seconds for a story that was stopped to end."""

    def overdue(self, late: str) -> None:
        """A step is past its time and does not let go."""

    def cancel_wanted(self) -> None:
        """Somebody wants the job canceled: this step boundary is where it ends."""


class Context:
    """Handed to a story as its first argument."""

    __slots__ = (
        "_claim",
        "_database_id",
        "_desk",
        "_elsewhere",
        "_in_flight",
        "_isolate",
        "_log",
        "_over",
        "_purse",
        "_side_tasks",
        "_steps",
        "_story_task",
        "_traces",
        "memory",
    )

    def __init__(
        self,
        claim: Claim,
        desk: Desk,
        isolate: Isolate,
        memory: Memory,
        story_task: asyncio.Task[Any] | None,
        database_id: str = "",
        traces: Traces | None = None,
    ) -> None:
        self._claim = claim
        self._desk = desk
        self._isolate = isolate
        self.memory = memory
        self._database_id = database_id
        self._traces = traces
        self._steps = {step.id: step for step in memory.steps} if memory.steps else {}
        self._in_flight: dict[StepId, _Flight] = {}
        self._side_tasks: set[asyncio.Task[Any]] = set()
        self._elsewhere: _Elsewhere | None = None  # few stories have remote work
        self._story_task = story_task
        self._log: Any = None
        self._over = False
        self._purse: Purse | None = None

    @property
    def job(self) -> int:
        return self._claim.job

    @property
    def epoch(self) -> int:
        """The fence of this claim: hand it on where the other side can use one."""
        return self._claim.epoch

    @property
    def attempt(self) -> int:
        """Which try of this generation this is, from 1."""
        return self._claim.failures

    @property
    def generation(self) -> int:
        return self._claim.generation

    @property
    def log(self) -> Any:
        """A structlog logger that knows which job this is."""
        if self._log is None:
            claim = self._claim
            self._log = structlog.get_logger("retoma.story").bind(
                job=claim.job,
                batch=claim.batch,
                kind=claim.kind,
                attempt=claim.failures,
                epoch=claim.epoch,
                correlation=claim.correlation,
                status="running",
            )
        return self._log

    @overload
    async def step(
        self,
        name: str,
        fn: Callable[..., Awaitable[T]],
        *args: Any,
        version: int = 1,
        key: str = "",
        where: str | None = None,
        timeout: Any = None,
        cpu: Any = None,
        memory: Any = None,
        once: bool = False,
        unknown: Unknown | str = Unknown.PARK,
        reconcile: Callable[..., Awaitable[Happened | None]] | None = None,
        pays: str | None = None,
        cost: Callable[[Any], Mapping[str, Any]] | None = None,
        reuse: Any = None,
    ) -> T: ...
    @overload
    async def step(
        self,
        name: str,
        fn: Callable[..., T],
        *args: Any,
        version: int = 1,
        key: str = "",
        where: str | None = None,
        timeout: Any = None,
        cpu: Any = None,
        memory: Any = None,
        once: bool = False,
        unknown: Unknown | str = Unknown.PARK,
        reconcile: Callable[..., Awaitable[Happened | None]] | None = None,
        pays: str | None = None,
        cost: Callable[[Any], Mapping[str, Any]] | None = None,
        reuse: Any = None,
    ) -> T: ...
    async def step(
        self,
        name: str,
        fn: Callable[..., Any],
        *args: Any,
        version: int = 1,
        key: str = "",
        where: str | None = None,
        timeout: Any = None,
        cpu: Any = None,
        memory: Any = None,
        once: bool = False,
        unknown: Unknown | str = Unknown.PARK,
        reconcile: Callable[..., Awaitable[Happened | None]] | None = None,
        pays: str | None = None,
        cost: Callable[[Any], Mapping[str, Any]] | None = None,
        reuse: Any = None,
    ) -> Any:
        """Do it once: after its commit it never runs again, its value is read back.

        An async `fn` runs on the loop; a sync one at the top of its module runs in a child
        process, or in a thread with `where="thread"`. What comes back is what would come back
        after a crash: the value as JSON keeps it, in the type `fn` says it returns.

        `timeout` is for the function alone, not for its saving; past it, TimeoutError, and a child
        is killed. `cpu` and `memory` are what a child may use, all that it has loaded included.
        `once` is for what must not happen twice without anybody knowing: that it is about to
        happen is committed first. Where it raises Transient or Permanent it is known not to have
        happened; after a crash or any other error nobody knows, and the next attempt asks
        `reconcile(*args)` (Happened(value), or None where it did not happen), else follows
        `unknown`: "park" it for a person, or "repeat".

        `pays`: the provider it pays; it is not begun while a budget for that is spent. `cost` makes
        of its value what `ctx.cost` takes, for a function that cannot call that. `reuse`: what the
        result depends on; where a job of this kind has it already, that is read instead.
        """
        step = _step_id(name, version, key)
        saved = self._steps.get(step)
        if saved is not None and saved.saved:
            if saved.spared is not None:
                self._spare(saved)
            return _read(saved.value, fn)
        beside = self._in_flight.get(step)
        if beside is not None:
            return _read(await beside.landed(), fn)
        asynchronous = _on_the_loop(fn, where)
        limits = None
        if timeout is not None or cpu is not None or memory is not None:
            in_child = not asynchronous and where is None
            limits = _limits_of(name, timeout, cpu, memory, in_child=in_child)
        flight = self._in_flight[step] = _Flight(self._join_later())
        run = partial(self._run, step, fn, args, asynchronous, where, limits, pays, cost)
        if self._traces is not None:
            run = partial(_traced, self._traces, step, run)
        at = _AT.set(step)
        try:
            if once:
                _check_once(name, reuse)
                text = await self._once(step, run, Unknown(unknown), reconcile, args, pays)
            elif reuse is not None:
                text = await self._reusing(step, run, fn, reuse)
            else:
                text = await run()
                await self._save(step, text)
        except BaseException as error:
            if self._purse is not None:
                self._purse.failed(step)
            flight.crash(error)
            raise
        finally:
            _AT.reset(at)
            del self._in_flight[step]
        self._steps[step] = SavedStep(step, StepState.SAVED, text)
        flight.land(text)
        return _read(text, fn)

    def kept(self, name: str, *, version: int = 1, key: str = "") -> bool:
        """Whether a step has its value already: then nobody need ask for what doing it would take."""
        saved = self._steps.get(_step_id(name, version, key))
        return saved is not None and saved.saved

    async def write(
        self,
        name: str,
        fn: Callable[..., T],
        *args: Any,
        version: int = 1,
        key: str = "",
    ) -> T:
        """A step in the database itself: what `fn(tx, *args)` writes and submits is there when its
        step is, and not otherwise.

        `fn` is a plain function that does nothing but ask its transaction, as with `app.write`; it is
        called again where the database was away and nothing had come of it. A runner that no longer
        holds the job writes nothing, and nothing is written for a job that is to be canceled.
        """
        step = _step_id(name, version, key)
        saved = self._steps.get(step)
        if saved is not None and saved.saved:
            return cast("T", _read(saved.value, fn))
        beside = self._in_flight.get(step)
        if beside is not None:
            return cast("T", _read(await beside.landed(), fn))
        if is_async(fn):
            raise BadInput(say("{fn!r} is async; ctx.write takes a plain function", fn=fn))
        flight = self._in_flight[step] = _Flight(self._join_later())
        try:
            text = await self._write(step, fn, args)
        except BaseException as error:
            flight.crash(error)
            raise
        finally:
            del self._in_flight[step]
        self._steps[step] = SavedStep(step, StepState.SAVED, text)
        flight.land(text)
        return cast("T", _read(text, fn))

    async def share(
        self, fn: Callable[[Any, Sequence[T]], Sequence[R]], about: T, *, size: int = 1
    ) -> R:
        """Write in the database together with other stories that do so now: one transaction calls
        `fn(tx, [about, …])` for all of them, and each gets its own of the answers.

        `fn` is a plain function, the same one for all, that answers for each in their order. It is no
        step: it is called again after a crash, or where a commit's answer was lost, and has to find by
        its own rows what it did. A story whose job another has by now, or that is to be canceled, is
        left out; what raises for many is tried for fewer, until it is told to whose it is. `size`: how
        much it is beside others; a transaction takes 1,000 in all, and one however large.
        """
        self._join_later()
        await self._may_write()
        return cast("R", await self._desk.share(fn, about, size))

    async def each(
        self,
        name: str,
        items: Iterable[T],
        fn: Callable[[T], Any],
        *,
        key: Callable[[T], str] | None = None,
        concurrency: int = AT_ONCE,
        version: int = 1,
        where: str | None = None,
        timeout: Any = None,
        cpu: Any = None,
        memory: Any = None,
        pays: str | None = None,
        cost: Callable[[Any], Mapping[str, Any]] | None = None,
        reuse: Callable[[T], Any] | None = None,
    ) -> list[Any]:
        """A durable loop: every item a step of its own, finished ones are read back.

        An item's key is its place unless `key` names it; a list that may change between tries
        needs names. `timeout`, `cpu`, `memory`, `pays` and `cost` are for each item; `reuse` makes
        of an item what its result depends on.
        """
        _check_concurrency(name, concurrency)
        work = list(items)
        keys = _keys_of(name, work, key)
        results: list[Any] = [None] * len(work)
        limits = {"timeout": timeout, "cpu": cpu, "memory": memory}
        places = iter(range(len(work)))

        async def take_turns() -> None:
            for place in places:
                results[place] = await self.step(
                    name,
                    fn,
                    work[place],
                    key=keys[place],
                    version=version,
                    where=where,
                    pays=pays,
                    cost=cost,
                    reuse=None if reuse is None else reuse(work[place]),
                    **limits,
                )

        await _all_or_first_error(take_turns, min(concurrency, len(work)))
        return results

    async def progress(self, share: float | None = None, note: str | None = None) -> None:
        """Say how far the work is (0 to 1), in words if you like. Keeps the job from stalling."""
        if share is not None and not 0 <= share <= 1:
            raise BadInput(
                say(
                    "job {job}: progress is from 0 to 1, not {share}", job=self.job, share=share
                )
            )
        if note is not None and not _storable(note):
            raise BadInput(
                say(
                    "job {job}: a note is text without a NUL, not {note!r}",
                    job=self.job,
                    note=note,
                )
            )
        await self._desk.report(share, None if note is None else redact_text(note))

    def cost(
        self,
        *,
        provider: str | None = None,
        model: str | None = None,
        usd: Any = None,
        brl: Any = None,
        **units: int | None,
    ) -> None:
        """Say what a call has just cost: `ctx.cost(tokens=812, usd="0.004")`, also bytes and others.

        It is written with the step that is being worked on, or with whatever this attempt writes
        next. Where no money is told the price list says it: `ctx.cost(provider="anthropic",
        model="…", input_tokens=812, output_tokens=64)`.
        """
        self._charge(_AT.get(), provider=provider, model=model, usd=usd, brl=brl, units=units)

    async def attach(self, name: str, content: bytes | str, media: str | None = None) -> None:
        """Keep something to look at later: a page, a picture, an answer."""
        guess = media or mimetypes.guess_type(_named(name))[0] or "application/octet-stream"
        if not _storable(guess):
            raise BadInput(
                say(
                    "{name}: a media type is text without a NUL, not {guess!r}",
                    name=name,
                    guess=guess,
                )
            )
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        with self._working():
            await self._desk.attach(Evidence(name, guess, data))

    def close(self) -> bool:
        """Nothing more may begin; whether something is still at work."""
        self._over = True
        if self._elsewhere is not None:
            self._elsewhere.branches.close()
        return bool(self._side_tasks)

    async def join_side_tasks(self, patience: float) -> "set[asyncio.Task[Any]]":
        """Nothing of this attempt should be at work when it is settled; those that still are."""
        loop = asyncio.get_running_loop()
        until = loop.time() + patience
        waiting = set(self._side_tasks)
        for task in waiting:
            task.cancel()
            task.add_done_callback(_look_at)
        while waiting and (left := until - loop.time()) > 0:
            # Whoever stops us now is too late: the story has ended, and that must be settled.
            with suppress(asyncio.CancelledError):
                _, waiting = await asyncio.wait(waiting, timeout=left)
        return waiting

    def stack(self) -> str:
        """Where the story stands, and what it has going beside it."""
        story = [] if self._story_task is None else [self._story_task]
        return stacks.of_tasks([*story, *self._side_tasks])

    def remote(
        self, name: str, remote: Remote, payload: Any = None, *, version: int = 1
    ) -> Coroutine[Any, Any, Any]:
        """Have somebody else's machine do it, and wait for its end without holding anything.

        Between two polls the story is left and told again from the top, so code between steps
        must be free of effects, as after a crash. Several may go on at once, each by a name of its
        own: the story is left when every branch of it waits, and told again when the first is due.
        What failed is sent again by the next attempt, not by this one, however often it is told.
        """
        step = _step_id(name, version, "")
        if self._elsewhere is None:
            self._elsewhere = _Elsewhere(Branches(self._flying, self._leave_story))
        calls = self._elsewhere.calls
        before = calls.get(step)
        if before is not None and before.under_way:
            return _two_of_one_name(step.name)
        calling_from = f"{self._database_id}-{self._claim.job}-{self._claim.fresh_from}"
        # Known from here on, also where its task gets no turn before the story ends.
        call = calls[step] = Call(self, remote, step.name, step.version, calling_from)
        return self._value_of(step, call, payload)

    async def _value_of(self, step: StepId, call: Call, payload: Any) -> Any:
        if self._over:
            raise asyncio.CancelledError  # a task that the story forgot
        self._join_later()
        try:
            with self._working():
                saved = self._steps.get(step)
                if saved is not None and saved.saved:
                    await call.close()
                    return decode(saved.value or "null")
                return decode(await call.result(payload))
        finally:
            call.under_way = False

    def use(
        self, pool: str, *, scope: Scope | str = Scope.ATTEMPT, shuns: str | None = None
    ) -> "Use":
        """Hold a thing nobody else may use meanwhile: `async with ctx.use("proxies") as proxy:`.

        With `scope="job"` it stays with the job over parking and crashes until the job ends, with
        `scope="release"` until `release` says that its use has ended: `proxy = await ctx.use(…)`.
        Where none is free, the job waits outside for one, at no cost. `shuns`: the name of one that
        it should not get, if there is another; the one it had last it never gets then.
        """
        try:
            wanted = Scope(scope)
        except ValueError:
            raise BadInput(
                say("a scope is one of {all}, not {scope!r}", all=", ".join(Scope), scope=scope)
            ) from None
        return Use(self._desk, _named(pool), wanted, shuns)

    async def rate(self, key: str, n: int = 1) -> None:
        """Return when `n` more calls keep to the rate that all runners share."""
        with self._working():
            await self._desk.spend(_named(key), n)

    def breaker(self, name: str) -> Guard:
        """Around calls to a service that may be down: `async with ctx.breaker("serpapi"):`.

        While it is down the job waits outside, and spends no attempt.
        """
        return self._desk.guard(_named(name))

    # — what a call of remote work asks for —

    @property
    def turn(self) -> list[int]:
        return [self.generation, self.attempt]

    async def keep(self, step: StepId, text: str | None, state: StepState) -> None:
        if self._over and state is StepState.BEGUN:
            raise LeaseLost(self.job)  # what is known by now is still told; the fence decides
        await self._desk.save(step, text, state)
        self._steps[step] = SavedStep(step, state, text)

    def tell(self, name: str, share: float | None, note: str | None) -> None:
        if self._elsewhere is not None:
            self._elsewhere.words[name] = share, note

    async def leave(self, wish: Snooze | Park | None) -> Never:
        await self._tell_of_remote_work()
        task = asyncio.current_task()
        alone = task is self._story_task and not self._side_tasks
        if alone or self._story_task is None or self._elsewhere is None:
            raise Unwound(first_due([wish]))
        await self._elsewhere.branches.wait(wish)

    async def pause(self, seconds: float) -> None:
        await self._desk.pause(seconds)

    async def may_go_out(self) -> None:
        if not self._desk.free_to_start():
            await self._desk.may_start()

    async def cancel_now(self) -> Never:
        self._desk.cancel_wanted()
        await asyncio.Event().wait()  # for the cancellation that this was
        raise asyncio.CancelledError

    def holds_remote_work(self) -> bool:
        """Whether something of this job may still be at work on another machine."""
        return self.may_have_remote_work() and any(
            step.live_elsewhere for step in self._steps.values()
        )

    def may_have_remote_work(self) -> bool:
        """Few have, and nearly all are asked: without a look at each step."""
        return self._elsewhere is not None or bool(self.memory.steps)

    def remote_steps(self) -> list[SavedStep]:
        return [step for step in self._steps.values() if step.id.name.startswith(REMOTE)]

    @property
    def left(self) -> Snooze | Park | None:
        """What the story was left for, as a whole."""
        return None if self._elsewhere is None else self._elsewhere.left

    def _working(self) -> AbstractContextManager[None]:
        return nullcontext() if self._elsewhere is None else self._elsewhere.branches.working()

    async def stop_remote_work(self) -> Snooze | Park | None:
        """Once the story has ended: what it left behind is stopped; None when it is seen to be over."""
        calls = {} if self._elsewhere is None else self._elsewhere.calls
        left: list[Snooze | Park | None] = []
        for step in [step.id for step in self._steps.values() if step.live_elsewhere]:
            call = calls.get(StepId(step.name.removeprefix(REMOTE), step.version))
            wish = first_due([]) if call is None else await call.ended()
            left += [] if wish is None else [wish]
        return first_due(left) if left else None

    async def forget_failures(self) -> None:
        """A person was asked, and may have put right what failed: then it is sent again."""
        for step in [*self._steps.values()]:
            told = decode(step.value or "null") if step.id.name.startswith(REMOTE) else None
            if isinstance(told, dict) and told.pop("turn", None) == self.turn:
                await self.keep(step.id, encode(told), step.state)

    async def _tell_of_remote_work(self) -> None:
        """Only what is new: the same words again are no progress, and must not hide a stall."""
        told = None if self._elsewhere is None else _together(self._elsewhere.words)
        if told is not None and told != (self.memory.progress, self.memory.note):
            await self.progress(*told)

    def _flying(self) -> "list[asyncio.Task[Any] | None]":
        return [flight.task for flight in self._in_flight.values()]

    def _leave_story(self, wish: Snooze | Park) -> None:
        if self._story_task is not None and self._elsewhere is not None and not self._over:
            self._elsewhere.left = wish
            self._over = True
            self._story_task.cancel()

    # — running and keeping a step —

    async def _once(
        self,
        step: StepId,
        run: Callable[..., Awaitable[str]],
        unknown: Unknown,
        reconcile: Callable[..., Awaitable[Happened | None]] | None,
        args: tuple[Any, ...],
        pays: str | None,
    ) -> str:
        begun = self._steps.get(step)
        if begun is not None and begun.state is StepState.BEGUN:
            if reconcile is not None:
                happened = await reconcile(*args)
                if happened is not None:
                    text = encode(happened.value)
                    await self._save(step, text)
                    return text
            elif unknown is Unknown.PARK:
                raise Unwound(
                    Park(
                        f"the step {step.name} was begun and nobody knows whether it happened",
                        ParkReason.UNKNOWN_REMOTE,
                    )
                )
        # What is begun must not be left for want of money.
        if (paid := self._paid(step, pays)) is not None:
            await self._desk.afford(paid)
        await self.keep(step, None, StepState.BEGUN)
        try:
            text = await run(afford=False)
        except (Transient, Permanent) as error:
            await self.keep(step, encode({"error": redact_text(str(error))}), StepState.FAILED)
            raise
        await self._save(step, text)
        return text

    async def _run(
        self,
        step: StepId,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        asynchronous: bool,
        where: str | None,
        limits: Limits | None,
        pays: str | None,
        cost: Callable[[Any], Mapping[str, Any]] | None,
        *,
        afford: bool = True,
    ) -> str:
        if self._over:
            raise LeaseLost(self.job)  # a task the story forgot; its attempt has ended
        if afford and (paid := self._paid(step, pays)) is not None:
            await self._desk.afford(paid)
        if not self._desk.free_to_start():
            await self._desk.may_start()
        if crashpoint.live:
            crashpoint("step.before_function")
        if asynchronous:
            work = fn(*args)
            text = encode(await (work if limits is None else self._in_time(step, work, limits)))
        elif where == "thread":
            work = self._isolate.in_thread(fn, args)
            text = encode(await (work if limits is None else self._in_time(step, work, limits)))
        else:
            own = (limits or NO_LIMITS).over(self._desk.limits)
            text = await self._isolate.in_child(fn, args, owner=self._claim.held, limits=own)
        if crashpoint.live:
            crashpoint("step.after_function")
        if cost is not None:
            self._charge_for(step, cost(_read(text, fn)))
        return text

    async def _write(self, step: StepId, fn: Callable[..., Any], args: tuple[Any, ...]) -> str:
        await self._may_write()
        return await self._desk.write(step, lambda tx: fn(tx, *args))

    async def _may_write(self) -> None:
        if self._over:
            raise LeaseLost(self.job)
        if not self._desk.free_to_start():
            await self._desk.may_start()

    async def _save(
        self,
        step: StepId,
        text: str,
        *,
        offer: Offer | None = None,
        reused_from: int | None = None,
    ) -> None:
        bill = None
        if self._purse is not None or offer is not None:
            bill = self._own_purse().bill(step, offer=offer, reused_from=reused_from)
        try:
            cancel = await self._desk.save(step, text, StepState.SAVED, bill)
        except BadRow as error:
            if bill is not None:
                self._own_purse().take_back(bill)
            raise _refused(text, error) from error
        if cancel:
            self._desk.cancel_wanted()

    # — money —

    def last_bill(self) -> Bill | None:
        """What this attempt has spent or spared, and not written down yet."""
        return None if self._purse is None else self._purse.last_bill()

    def _paid(self, step: StepId, pays: str | None) -> Iterable[str] | None:
        return self._desk.paid(step.name) if pays is None else (pays,)

    def _charge(self, step: StepId | None, **told: Any) -> None:
        made = charge(**told)
        self._own_purse().spend(step, made)
        if step is not None:
            self._desk.pays(step.name, made.provider)

    def _charge_for(self, step: StepId, told: Mapping[str, Any]) -> None:
        """What a function of the step's value says."""
        money = {name: told.get(name) for name in ("provider", "model", "usd", "brl")}
        units = {name: n for name, n in told.items() if name not in money}
        self._charge(step, **money, units=units)

    def _spare(self, saved: SavedStep) -> None:
        """Once in an attempt: what would have been paid again."""
        self._own_purse().spare(read_charges(saved.spared))
        self._steps[saved.id] = saved._replace(spared=None)

    def _own_purse(self) -> Purse:
        if self._purse is None:
            self._purse = Purse(self._desk.payer)
        return self._purse

    async def _reusing(
        self, step: StepId, run: Callable[[], Awaitable[str]], fn: Callable[..., Any], key: Any
    ) -> str:
        """What another job has made of the same; else it is made, and offered to others."""
        afresh = self._claim.fresh_from > 1  # a person wanted nothing that was kept
        offer = offer_of(self._claim.kind, step, key)
        found = None if afresh else await self._desk.look_up(offer)
        if found is not None and _fits(found.value, fn):
            self._own_purse().spare([*found.charges])
            await self._save(step, found.value, reused_from=found.job)
            return found.value
        text = await run()
        await self._save(step, text, offer=offer)
        return text

    async def _in_time(self, step: StepId, work: Awaitable[Any], limits: Limits) -> Any:
        limit = cast("float", limits.timeout)
        late = f"step {step.name} took longer than {limit:g} s"
        loop = asyncio.get_running_loop()
        last = loop.call_later(limit + self._desk.let_go, self._desk.overdue, late)
        try:
            async with asyncio.timeout(limit) as clock:
                return await work
        except TimeoutError as error:
            if not clock.expired():
                raise
            raise TimeoutError(late) from error
        finally:
            last.cancel()

    def _join_later(self) -> "asyncio.Task[Any] | None":
        task = asyncio.current_task()
        if task is not None and task is not self._story_task and task not in self._side_tasks:
            self._side_tasks.add(task)
            task.add_done_callback(self._side_tasks.discard)
        return task


class _Elsewhere:
    """What a story needs besides that has others' machines work for it."""

    __slots__ = ("branches", "calls", "left", "words")

    def __init__(self, branches: Branches) -> None:
        self.branches = branches
        self.calls: dict[StepId, Call] = {}  # told of in this claim
        self.words: dict[str, tuple[float | None, str | None]] = {}  # theirs, to be told of
        self.left: Snooze | Park | None = None


class _Flight:
    """A step under way; whoever asks for the same step meanwhile waits for this one."""

    __slots__ = ("_watched", "task")

    def __init__(self, task: "asyncio.Task[Any] | None") -> None:
        self.task = task
        self._watched: asyncio.Future[str] | None = None

    async def landed(self) -> str:
        if self._watched is None:
            self._watched = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._watched)

    def land(self, text: str) -> None:
        if self._watched is not None:
            self._watched.set_result(text)

    def crash(self, error: BaseException) -> None:
        if self._watched is None:
            return
        if isinstance(error, asyncio.CancelledError):
            self._watched.cancel()
        else:
            self._watched.set_exception(error)
            self._watched.exception()  # seen by those who wait; nobody else need


def is_async(fn: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await."""
    return _is_async(fn if type(fn) is FunctionType else _called(fn))


@lru_cache(maxsize=1024)
def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function)


def _called(fn: Any) -> Callable[..., Any]:
    """The function that runs when it is called: of a partial, a method, an object with __call__.

    It is remembered in place of what was given, which may have no hash and should not be kept.
    """
    while isinstance(fn, partial):
        fn = fn.func
    fn = getattr(fn, "__func__", fn)
    return fn if inspect.isroutine(fn) or inspect.isclass(fn) else type(fn).__call__


def _on_the_loop(fn: Callable[..., Any], where: str | None) -> bool:
    """Whether a step runs here, and not in a child or a thread; refuses what can run nowhere."""
    if where not in (None, "thread"):
        raise BadInput(
            say('where={where!r}: a step runs where it belongs, or where="thread"', where=where)
        )
    if is_async(fn):
        if where is not None:
            raise BadInput(say("{fn!r} is async: it runs on the loop, not in a thread", fn=fn))
        return True
    if where is None:
        check_can_travel(fn)
    return False


async def _traced(
    traces: Traces, step: StepId, run: Callable[..., Awaitable[str]], **how: Any
) -> str:
    """The function alone, not its saving: a step that is read back has no span."""
    with traces.span(
        f"step {step.name}", step=step.name, key=step.key or None, version=step.version
    ):
        return await run(**how)


def _limits_of(name: str, timeout: Any, cpu: Any, memory: Any, *, in_child: bool) -> Limits:
    limits = Limits.read(name, timeout=timeout, cpu=cpu, memory=memory)
    if not in_child and (limits.cpu is not None or limits.memory is not None):
        raise BadInput(
            say(
                "{name}: cpu and memory are limits of a child, and it does not run in one",
                name=name,
            )
        )
    return limits


def _check_concurrency(name: str, concurrency: int) -> None:
    if concurrency < 1:
        raise BadInput(
            say(
                "{name}: concurrency is at least 1, not {concurrency}",
                name=name,
                concurrency=concurrency,
            )
        )


def _keys_of(name: str, items: Sequence[T], key: Callable[[T], str] | None) -> list[str]:
    """Under which each item of a loop is found again; its place, where nothing names it."""
    keys = [str(place) if key is None else str(key(item)) for place, item in enumerate(items)]
    if len(set(keys)) < len(keys):
        [(twice, _)] = Counter(keys).most_common(1)
        raise BadInput(
            say(
                "{name}: two items of this loop have the key {twice!r}",
                name=name,
                twice=twice,
            )
        )
    return keys


def _check_once(name: str, reuse: Any) -> None:
    if reuse is not None:
        raise BadInput(
            say(
                "{name}: what must not happen twice has an effect, and that cannot be used again",
                name=name,
            )
        )


def _fits(text: str, fn: Callable[..., Any]) -> bool:
    """Whether it is still what the function says it returns."""
    try:
        _read(text, fn)
    except Undecodable:
        return False
    return True


async def _two_of_one_name(name: str) -> Never:
    # Awaited like any other: what else was made for the same gather is not left unawaited.
    raise BadInput(say("{name}: two pieces of remote work need two names", name=name))


def _together(
    words: "dict[str, tuple[float | None, str | None]]",
) -> tuple[float | None, str | None] | None:
    """What several pieces of remote work tell, as the progress of one job."""
    if len(words) <= 1:
        return next(iter(words.values()), None)
    shares = [share for share, _ in words.values() if share is not None]
    notes = [f"{name}: {note}" for name, (_, note) in sorted(words.items()) if note]
    share = sum(shares) / len(shares) if shares else None
    return share, "; ".join(notes)[:NOTE] or None


def _look_at(task: "asyncio.Task[Any]") -> None:
    """Its error is nobody's any more, and need not be told as one that was forgotten."""
    if not task.cancelled():
        task.exception()


def _read(text: str | None, fn: Callable[..., Any]) -> Any:
    return decode("null" if text is None else text, returns(fn))


def returns(fn: Callable[..., Any]) -> Any:
    """The type a function says it returns; None where it does not say."""
    return _returns(fn if type(fn) is FunctionType else _called(fn))


@lru_cache(maxsize=1024)
def _returns(function: Callable[..., Any]) -> Any:
    try:
        return get_type_hints(function).get("return")
    except (TypeError, NameError):
        return None


def _step_id(name: object, version: object, key: object) -> StepId:
    """Refuses what would come back as something else, and so never be found again."""
    try:
        return _known_step_id(name, version, key)
    except TypeError:  # what has no hash
        return _checked_step_id(name, version, key)


@lru_cache(maxsize=4096, typed=True)
def _known_step_id(name: object, version: object, key: object) -> StepId:
    return _checked_step_id(name, version, key)


def _checked_step_id(name: object, version: object, key: object) -> StepId:
    if type(version) is not int or version < 1:
        raise BadInput(
            say("a step's version is a number from 1, not {version!r}", version=version)
        )
    if not isinstance(key, str) or len(key) > 500 or not _storable(key):
        raise BadInput(
            say("a step's key is a text of at most 500 characters, not {key!r}", key=key)
        )
    return StepId(_named(name), version, key)


def _storable(text: str) -> bool:
    plain = text.isascii() or text.encode("utf-8", "ignore").decode() == text
    return plain and "\0" not in text


def _refused(text: str, error: BadRow) -> Unstorable:
    """The codec let it pass, the database does not: its bytes are kept, it is not paid for again."""
    unstorable = Unstorable(text, f"the database refused it ({error})")
    unstorable.whole = text.encode()
    return unstorable


def _named(name: object) -> str:
    if not isinstance(name, str) or not name or len(name) > 200 or not _storable(name):
        raise BadInput(
            say(
                "a step or evidence needs a name of 1 to 200 characters, not {name!r}",
                name=name,
            )
        )
    return name


async def _all_or_first_error(work: Callable[[], Awaitable[None]], times: int) -> None:
    """Run it so many times at once; at the first error the others are stopped and waited for."""
    tasks = [asyncio.ensure_future(cast("Any", work())) for _ in range(times)]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
