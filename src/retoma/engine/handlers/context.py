"""What a story may use: steps, durable loops, progress, costs, evidence, a log.

The face alone; behind it `steps.py` does and keeps a step, `elsewhere.py` has remote work done.
"""

import mimetypes
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast, overload

import structlog

from retoma.engine.handlers.dependencies import HandlerServices
from retoma.engine.handlers.durable_loop import (
    AT_ONCE,
    all_or_first_error,
    check_concurrency,
    keys_of,
)
from retoma.engine.handlers.remote import Remote
from retoma.engine.handlers.remote_work import Elsewhere
from retoma.engine.handlers.step_request import (
    Work,
    check_function,
    limits_of,
    once_of,
    place_of,
)
from retoma.engine.handlers.steps import Steps
from retoma.engine.handlers.tasks import Task, Tasks
from retoma.engine.isolation.function import is_async, read_as
from retoma.engine.isolation.isolate import NO_LIMITS, Isolate, Limits
from retoma.engine.limits.breakers import Guard
from retoma.engine.limits.pools import Use
from retoma.engine.limits.rates import Permit
from retoma.engine.rules.cost import Bill
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.job import Claim, Memory, SavedStep, Scope, StepId
from retoma.engine.rules.outcome import Happened, Park, Snooze, Unknown
from retoma.engine.rules.step_names import named, step_id, storable
from retoma.engine.store import Evidence
from retoma.engine.traces import Traces
from retoma.words import say

T = TypeVar("T")
R = TypeVar("R")


class Context:
    """Handed to a story as its first argument."""

    __slots__ = (
        "_claim",
        "_database_id",
        "_elsewhere",
        "_log",
        "_services",
        "_steps",
        "memory",
    )

    def __init__(
        self,
        claim: Claim,
        services: HandlerServices,
        isolate: Isolate,
        memory: Memory,
        story_task: Task | None,
        database_id: str = "",
        traces: Traces | None = None,
    ) -> None:
        self._claim = claim
        self._services = services
        self.memory = memory
        self._database_id = database_id
        self._steps = Steps(claim, services, isolate, memory.steps, Tasks(story_task), traces)
        self._elsewhere: Elsewhere | None = None  # few stories have remote work
        self._log: Any = None

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
            logger = structlog.get_logger("retoma.story")
            self._log = logger.bind(**self._claim.log_fields, status="running")
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
        process, in a thread with `where="thread"`, or with `where="confined"` in a child that reads
        what strangers sent and has no environment, network or files. An attempt asks for a step once: a second call
        raises DuplicateStep, unless the first one raised. What comes back is what would come back
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
        step = step_id(name, version, key)
        self._steps.ask(step)
        try:
            saved = self._steps.saved(step)
            if saved is not None:
                return await self._steps.read_back(saved, fn)
            place = place_of(fn, where)
            work = Work(
                step,
                fn,
                args,
                place,
                limits_of(name, place, timeout, cpu, memory),
                once_of(name, unknown, reconcile, reuse) if once else None,
                reuse,
                pays,
                cost,
            )
            return read_as(await self._steps.do(work), fn)
        except BaseException:
            self._steps.forget((step,))
            raise

    def kept(self, name: str, *, version: int = 1, key: str = "") -> bool:
        """Whether a step has its value already: then nobody need ask for what doing it would take."""
        return self._steps.saved(step_id(name, version, key)) is not None

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
        check_function(fn)
        if is_async(fn):
            raise BadInput(say("{fn!r} is async; ctx.write takes a plain function", fn=fn))
        step = step_id(name, version, key)
        self._steps.ask(step)
        try:
            saved = self._steps.saved(step)
            if saved is not None:
                return cast("T", await self._steps.read_back(saved, fn))
            text = await self._steps.do(Work(step, fn, args, "database"))
            return cast("T", read_as(text, fn))
        except BaseException:
            self._steps.forget((step,))
            raise

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
        self._steps.tasks.join()
        await self._steps.may_begin()
        return cast("R", await self._services.share(fn, about, size))

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
        needs names. A loop that raised may be run again; the items that are done are read back. `timeout`, `cpu`, `memory`, `pays` and `cost` are for each item; `reuse` makes
        of an item what its result depends on.
        """
        check_concurrency(name, concurrency)
        work = list(items)
        keys = keys_of(name, work, key)
        results: list[Any] = [None] * len(work)
        limits = {"timeout": timeout, "cpu": cpu, "memory": memory}
        places = iter(range(len(work)))
        returned: list[StepId] = []

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
                returned.append(step_id(name, version, keys[place]))

        try:
            await all_or_first_error(take_turns, min(concurrency, len(work)))
        except BaseException:
            self._steps.forget(returned)
            raise
        return results

    async def progress(self, share: float | None = None, note: str | None = None) -> None:
        """Say how far the work is (0 to 1), in words if you like. Keeps the job from stalling."""
        await self._steps.report(share, note)

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
        self._steps.charge(provider=provider, model=model, usd=usd, brl=brl, units=units)

    async def attach(self, name: str, content: bytes | str, media: str | None = None) -> None:
        """Keep something to look at later: a page, a picture, an answer."""
        guess = media or mimetypes.guess_type(named(name))[0] or "application/octet-stream"
        if not storable(guess):
            raise BadInput(
                say(
                    "{name}: a media type is text without a NUL, not {guess!r}",
                    name=name,
                    guess=guess,
                )
            )
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        with self._working():
            await self._services.attach(Evidence(name, guess, data))

    async def read_apart(
        self, fn: Callable[..., T], content: bytes, *args: Any, limits: Limits = NO_LIMITS
    ) -> T:
        """Have a confined child process read bytes of a stranger: what `fn(path, *args)` returns.

        `fn` is a plain function at the top of a module; `path` is a file with the bytes. The child has no
        environment, no network and no files but code and that one, and is killed past its limits. It is
        no step: nothing of it is kept.
        """
        with self._working():
            return cast("T", await self._steps.read_apart(fn, content, *args, limits=limits))

    def remote(
        self, name: str, remote: Remote, payload: Any = None, *, version: int = 1
    ) -> Coroutine[Any, Any, Any]:
        """Have somebody else's machine do it, and wait for its end without holding anything.

        Between two polls the story is left and told again from the top, so code between steps
        must be free of effects, as after a crash. Several may go on at once, each by a name of its
        own: the story is left when every branch of it waits, and told again when the first is due.
        What failed is sent again by the next attempt, not by this one, however often it is told.
        """
        return self._own_elsewhere().call(step_id(name, version, ""), remote, payload)

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
        return Use(self._services, named(pool), wanted, shuns)

    def rate(self, key: str, n: int = 1, *, adaptive: bool = False) -> Permit:
        """`await` it: returns when `n` more calls keep to the rate that all runners share.

        `async with ctx.rate("serpapi", adaptive=True):` around the call finds the rate by trying, where
        nobody has set one: it grows while the service takes every call, and shrinks for all runners
        when a call raises Throttled, or Transient with a `retry_after`, or takes far longer than usual. Nobody
        calls before the time that the service asks for. A rate that a person sets is the most it may be.
        """
        return self._services.permit(named(key), n, adaptive=adaptive, working=self._working)

    def breaker(self, name: str) -> Guard:
        """Around calls to a service that may be down: `async with ctx.breaker("serpapi"):`.

        While it is down the job waits outside, and spends no attempt.
        """
        return self._services.guard(named(name))

    def holds_remote_work(self) -> bool:
        """Whether something of this job may still be at work on another machine."""
        return self.may_have_remote_work() and self._steps.live_elsewhere()

    def remote_steps(self) -> list[SavedStep]:
        """All that was ever sent for this job, as it stands by now."""
        return self._steps.of_remote_work()

    async def may_go_out(self) -> None:
        """Return when something may be started under this lease; raise when never again."""
        await self._steps.may_go_out()

    async def pause(self, seconds: float) -> None:
        """By the runner's clock, which tests can move."""
        await self._services.pause(seconds)

    def _own_elsewhere(self) -> Elsewhere:
        if self._elsewhere is None:
            self._elsewhere = Elsewhere(self._steps, self.memory, self._database_id)
        return self._elsewhere

    def _working(self) -> AbstractContextManager[None]:
        return nullcontext() if self._elsewhere is None else self._elsewhere.working()

    # — what the attempt asks once the story has ended —

    def close(self) -> bool:
        """Nothing more may begin; whether something is still at work."""
        self._steps.over = True
        if self._elsewhere is not None:
            self._elsewhere.close()
        return bool(self._steps.tasks.beside)

    async def join_side_tasks(self, patience: float) -> set[Task]:
        """Nothing of this attempt should be at work when it is settled; those that still are."""
        return await self._steps.tasks.stop(patience)

    def stack(self) -> str:
        """Where the story stands, and what it has going beside it."""
        return self._steps.tasks.stack()

    def last_bill(self) -> Bill | None:
        """What this attempt has spent or spared, and not written down yet."""
        return self._steps.last_bill()

    @property
    def left(self) -> Snooze | Park | None:
        """What the story was left for, as a whole."""
        return None if self._elsewhere is None else self._elsewhere.left

    def may_have_remote_work(self) -> bool:
        """Few have, and nearly all are asked: without a look at each step."""
        return self._elsewhere is not None or bool(self.memory.steps)

    async def stop_remote_work(self) -> Snooze | Park | None:
        """What the story left behind is stopped; None when it is seen to be over."""
        return await self._own_elsewhere().stop()

    async def forget_failures(self) -> None:
        """A person was asked, and may have put right what failed: then it is sent again."""
        await self._own_elsewhere().forget_failures()
