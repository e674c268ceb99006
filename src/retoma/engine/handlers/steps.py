"""The steps of one attempt: read back or done, and kept.

`Steps.asking` lets an attempt ask for a step once; `Steps.do` does one. Below it stand the ways of
doing one (plainly, once, used again, in the database), how a function is run, and what it costs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, cast

from retoma.codec import Unstorable, encode
from retoma.db import BadRow, crashpoint
from retoma.engine.costs.cost_buffer import Purse
from retoma.engine.handlers.dependencies import HandlerServices
from retoma.engine.handlers.step_request import Once, Work
from retoma.engine.handlers.tasks import Task, Tasks
from retoma.engine.isolation.function import fits, read_as, returns
from retoma.engine.isolation.isolate import NO_LIMITS, Isolate, Limits
from retoma.engine.log import get_logger
from retoma.engine.rules.cost import Bill, Offer, charge, read_charges
from retoma.engine.rules.errors import BadInput, DuplicateStep, LeaseLost, Permanent, Transient
from retoma.engine.rules.job import REMOTE, Claim, SavedStep, StepId
from retoma.engine.rules.outcome import Park, Unknown, Unwound
from retoma.engine.rules.states import ParkReason, StepState
from retoma.engine.rules.step_names import storable
from retoma.engine.store.reuse import offer_of
from retoma.engine.traces import Traces
from retoma.secret import redact_text
from retoma.words import say

log = get_logger("retoma.steps")

AHEAD = 256 * 1024  # characters of small values that are loaded with one that was asked for
# The step that is being worked on here: what it costs is written with it.
_AT: ContextVar[StepId | None] = ContextVar("retoma_step", default=None)


class Steps:
    """What an attempt knows of its job's steps, and how it does one more."""

    __slots__ = (
        "_asked",
        "_isolate",
        "_left",
        "_purse",
        "_traces",
        "claim",
        "known",
        "over",
        "services",
        "tasks",
        "under_way",
    )

    def __init__(
        self,
        claim: Claim,
        services: HandlerServices,
        isolate: Isolate,
        found: list[SavedStep],
        tasks: Tasks,
        traces: Traces | None,
    ) -> None:
        self.claim = claim
        self.services = services
        self._isolate = isolate
        self.known = {step.id: step for step in found} if found else {}
        self.tasks = tasks
        self._traces = traces
        self._asked: set[StepId] = set()  # by this attempt: under way, or their value returned
        self.under_way: dict[StepId, Task | None] = {}
        self._left: list[SavedStep] | None = None  # not loaded yet, the first saved first
        self.over = False  # the story has ended: nothing more may begin
        self._purse: Purse | None = None

    def saved(self, step: StepId) -> SavedStep | None:
        """The step, if it has its value already."""
        known = self.known.get(step)
        return known if known is not None and known.saved else None

    async def read_back(self, saved: SavedStep, fn: Callable[..., Any]) -> Any:
        """Its value, for the handler, which alone keeps it."""
        if saved.spared is not None:
            self._spare(saved)
        return await self.read(saved, lambda text: read_as(text, fn))

    async def read(self, saved: SavedStep, decoded: Callable[[str], Any]) -> Any:
        """What is made of a saved step's text, which is loaded if it was left in the database."""
        if saved.unread:
            steps, size = self._with_the_next(saved)
            async with self.services.reading(steps, size) as values:
                self._learn(values)
                value = decoded(self._text_of(saved.id))
                self._drop(saved.id)
        else:
            value = decoded("null" if saved.value is None else saved.value)
            self._drop(saved.id)
        return value

    def _with_the_next(self, saved: SavedStep) -> tuple[list[StepId], int]:
        """The step, and those that were saved after it, while they are small: their turn comes next."""
        if self._left is None:
            left = [step for step in self.known.values() if step.unread and step.age > 0]
            self._left = sorted(left, key=lambda step: -step.age)
        steps, size = [saved.id], saved.unread
        self._left = [step for step in self._left if step.id != saved.id]
        while self._left and size + self._left[0].unread <= AHEAD:
            step = self._left.pop(0)
            steps.append(step.id)
            size += step.unread
        return steps, size

    def _learn(self, values: Mapping[StepId, str]) -> None:
        for step, text in values.items():
            self.known[step] = self.known[step]._replace(value=text, unread=0)

    def _text_of(self, step: StepId) -> str:
        text = self.known[step].value
        if text is None:
            raise LeaseLost(self.claim.job)  # its row has gone: the job was begun anew
        return text

    def _drop(self, step: StepId) -> None:
        """Keep no value that the handler has: asked for again, it is loaded again."""
        known = self.known[step]
        if known.value is not None:
            self.known[step] = known._replace(value=None, unread=len(known.value), age=0.0)

    def of_remote_work(self) -> list[SavedStep]:
        return [step for step in self.known.values() if step.id.name.startswith(REMOTE)]

    def live_elsewhere(self) -> bool:
        """Whether something of this job may still be at work on another machine."""
        return any(step.live_elsewhere for step in self.known.values())

    def ask(self, step: StepId) -> None:
        """Note that this attempt asks for the step; raise DuplicateStep where it already has.

        A call that raises has to be forgotten: it may be made again.
        """
        if step in self._asked:
            raise _duplicate(step)
        self._asked.add(step)

    def forget(self, steps: Iterable[StepId]) -> None:
        """Let this attempt ask for these steps again."""
        self._asked.difference_update(steps)

    async def do(self, work: Work) -> str:
        """Do the step and return its value as it is stored."""
        step = work.step
        self.under_way[step] = self.tasks.join()
        at = _AT.set(step)
        try:
            text = await self._way_of(work)
        except BaseException:
            if self._purse is not None:
                self._purse.failed(step)
            raise
        finally:
            _AT.reset(at)
            del self.under_way[step]
        self.known[step] = SavedStep(step, StepState.SAVED, None, unread=len(text))
        return text

    async def may_begin(self) -> None:
        if self.over:
            raise LeaseLost(self.claim.job)  # a task the story forgot; its attempt has ended
        await self.may_go_out()

    async def may_go_out(self) -> None:
        if not self.services.free_to_start():
            await self.services.may_start()

    async def keep(self, step: StepId, text: str | None, state: StepState) -> None:
        """Commit a step in this state, or raise LeaseLost."""
        if self.over and state is StepState.BEGUN:
            # What is known by now is still told; the fence decides.
            raise LeaseLost(self.claim.job)
        kept = SavedStep(step, state, text)
        if state is StepState.BEGUN and kept.live_elsewhere:
            # Whoever ends the attempt before the answer must reckon with its commit.
            self.known[step] = kept
        await self.services.save(step, text, state)
        self.known[step] = kept
        if state is StepState.SAVED and not step.name.startswith(REMOTE):
            self._drop(step)

    async def report(self, share: float | None, note: str | None) -> None:
        job = self.claim.job
        if share is not None and not 0 <= share <= 1:
            raise BadInput(
                say("job {job}: progress is from 0 to 1, not {share}", job=job, share=share)
            )
        if note is not None and not storable(note):
            raise BadInput(
                say("job {job}: a note is text without a NUL, not {note!r}", job=job, note=note)
            )
        await self.services.report(share, None if note is None else redact_text(note))

    # — ways of doing a step: each ends with its value committed —

    def _way_of(self, work: Work) -> Awaitable[str]:
        if work.place == "database":
            return self._write(work)
        if work.once is not None:
            return self._once(work, work.once)
        return self._plainly(work) if work.reuse is None else self._reuse(work)

    async def _plainly(self, work: Work) -> str:
        text = await self._run(work)
        await self._save(work.step, text)
        return text

    async def _write(self, work: Work) -> str:
        """What the function writes and the step are one transaction."""
        await self.may_begin()
        type_ = returns(work.fn)
        return await self.services.write(work.step, lambda tx: work.fn(tx, *work.args), type_)

    async def _once(self, work: Work, once: Once) -> str:
        """That it is about to happen is committed first; after a crash it is asked after."""
        step = work.step
        begun = self.known.get(step)
        if begun is not None and begun.state is StepState.BEGUN:
            text = await _found_out(work, once)
            if text is not None:
                await self._save(step, text)
                return text
        if (paid := self._paid(work)) is not None:
            await self.services.afford(paid)  # what is begun must not be left for want of money
        await self.keep(step, None, StepState.BEGUN)
        try:
            text = await self._run(work, afford=False)
        except (Transient, Permanent) as error:
            await self.keep(step, encode({"error": redact_text(str(error))}), StepState.FAILED)
            raise
        await self._save(step, text)
        return text

    async def _reuse(self, work: Work) -> str:
        """What another job has made of the same; else it is made, and offered to others."""
        afresh = self.claim.fresh_from > 1  # a person wanted nothing that was kept
        offer = offer_of(self.claim.kind, work.step, work.reuse)
        found = None if afresh else await self.services.look_up(offer)
        if found is not None and fits(found.value, work.fn):
            self._own_purse().spare([*found.charges])
            await self._save(work.step, found.value, reused_from=found.job)
            return found.value
        text = await self._run(work)
        await self._save(work.step, text, offer=offer)
        return text

    # — running the function —

    def _run(self, work: Work, *, afford: bool = True) -> Awaitable[str]:
        made = self._made(work, afford)
        return made if self._traces is None else _traced(self._traces, work.step, made)

    async def _made(self, work: Work, afford: bool) -> str:
        if self.over:
            raise LeaseLost(self.claim.job)
        if afford and (paid := self._paid(work)) is not None:
            await self.services.afford(paid)
        if not self.services.free_to_start():
            await self.services.may_start()
        if crashpoint.live:
            crashpoint("step.before_function")
        if work.place in ("child", "confined"):
            text = await self._in_child(work)
        else:
            text = encode(await self._here(work), returns(work.fn))
        if crashpoint.live:
            crashpoint("step.after_function")
        if work.cost is not None:
            self._charge_as_said(work, work.cost, text)
        return text

    def _in_child(self, work: Work) -> Awaitable[str]:
        limits = (work.limits or NO_LIMITS).over(self.services.limits)
        return self._isolate.in_child(
            work.fn,
            work.args,
            owner=self.claim.held,
            limits=limits,
            confined=work.place == "confined",
        )

    async def read_apart(
        self, fn: Callable[..., Any], content: bytes, *args: Any, limits: Limits = NO_LIMITS
    ) -> Any:
        await self.may_begin()
        return await self._isolate.read(
            fn, content, *args, owner=self.claim.held, limits=limits
        )

    def _here(self, work: Work) -> Awaitable[Any]:
        """In this process: on the loop or in a thread."""
        on_loop = work.place == "loop"
        value = work.fn(*work.args) if on_loop else self._isolate.in_thread(work.fn, work.args)
        return value if work.limits is None else self._in_time(work.step, value, work.limits)

    async def _in_time(self, step: StepId, value: Awaitable[Any], limits: Limits) -> Any:
        limit = cast("float", limits.timeout)
        late = f"step {step.name} took longer than {limit:g} s"
        loop = asyncio.get_running_loop()
        last = loop.call_later(limit + self.services.let_go, self.services.overdue, late)
        try:
            async with asyncio.timeout(limit) as clock:
                return await value
        except TimeoutError as error:
            if not clock.expired():
                raise
            raise TimeoutError(late) from error
        finally:
            last.cancel()

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
            cancel = await self.services.save(step, text, StepState.SAVED, bill)
        except BadRow as error:
            if bill is not None:
                self._own_purse().take_back(bill)
            raise _refused(text, error) from error
        if cancel:
            self.services.cancel_wanted()

    # — money —

    def charge(self, **told: Any) -> None:
        """For the step that is being worked on, or for none."""
        self._charge(_AT.get(), **told)

    def last_bill(self) -> Bill | None:
        """What this attempt has spent or spared, and not written down yet."""
        return None if self._purse is None else self._purse.last_bill()

    def _paid(self, work: Work) -> Iterable[str] | None:
        return self.services.paid(work.step.name) if work.pays is None else (work.pays,)

    def _charge(self, step: StepId | None, **told: Any) -> None:
        made = charge(**told)
        self._own_purse().spend(step, made)
        if step is not None:
            self.services.pays(step.name, made.provider)

    def _charge_as_said(
        self, work: Work, cost: Callable[[Any], Mapping[str, Any]], text: str
    ) -> None:
        """Charge what `cost` says. The result is paid for: it is kept also where `cost` fails."""
        try:
            self._charge_for(work.step, cost(read_as(text, work.fn)))
        except Exception as error:  # noqa: BLE001 — whatever somebody's function does
            log.warning(
                "step.cost_unknown", job=self.claim.job, step=work.step.name, error=repr(error)
            )
            self._charge(work.step, provider=work.pays, units={"calls": 1})

    def _charge_for(self, step: StepId, told: Mapping[str, Any]) -> None:
        """What a function of the step's value says."""
        money = {name: told.get(name) for name in ("provider", "model", "usd", "brl")}
        units = {name: n for name, n in told.items() if name not in money}
        self._charge(step, **money, units=units)

    def _spare(self, saved: SavedStep) -> None:
        """Once in an attempt: what would have been paid again."""
        self._own_purse().spare(read_charges(saved.spared))
        self.known[saved.id] = saved._replace(spared=None)

    def _own_purse(self) -> Purse:
        if self._purse is None:
            self._purse = Purse(self.services.payer)
        return self._purse


async def _traced(traces: Traces, step: StepId, made: Awaitable[str]) -> str:
    """The function alone, not its saving: a step that is read back has no span."""
    with traces.span(
        f"step {step.name}", step=step.name, key=step.key or None, version=step.version
    ):
        return await made


async def _found_out(work: Work, once: Once) -> str | None:
    """What came of a step that was begun; None where it may be done."""
    if once.reconcile is not None:
        happened = await once.reconcile(*work.args)
        return None if happened is None else encode(happened.value, returns(work.fn))
    if once.unknown is Unknown.PARK:
        why = say(
            "the step {step} was begun and nobody knows whether it happened",
            step=work.step.name,
        )
        raise Unwound(Park(why, ParkReason.UNKNOWN_REMOTE))
    return None


def _duplicate(step: StepId) -> DuplicateStep:
    called = step.name if not step.key else f"{step.name} with the key {step.key!r}"
    if _AT.get() == step:
        return DuplicateStep(
            say(
                "step {step}: its own function asks for it and would wait for itself",
                step=called,
            )
        )
    return DuplicateStep(
        say(
            "step {step}: this attempt has already asked for it, and the second call would return"
            " the first one's value; give each call a key= of its own, or use ctx.each for a loop",
            step=called,
        )
    )


def _refused(text: str, error: BadRow) -> Unstorable:
    """The codec let it pass, the database does not: its bytes are kept, it is not paid for again."""
    unstorable = Unstorable(text, f"the database refused it ({error})")
    unstorable.whole = text.encode()
    return unstorable
