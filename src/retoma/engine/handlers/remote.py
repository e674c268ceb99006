"""Work on somebody else's machine: how it is started, asked after, found again and stopped.

Before the first byte leaves, the intent is committed under a key of our own. After a crash the work
is found again by its handle, or by that key; it is sent again only where it is known to be absent or
over. Where nobody can tell, a person must (MECHANICS 19, 29; E6).
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Never, Protocol, TypeVar

from retoma.codec import Unstorable, decode, encode
from retoma.db import crashpoint
from retoma.engine.rules.duration import seconds
from retoma.engine.rules.errors import BadInput, LeaseLost, Permanent, Transient
from retoma.engine.rules.job import HANDLE, REMOTE, Memory, SavedStep, StepId
from retoma.engine.rules.outcome import Park, Snooze
from retoma.engine.rules.states import ParkReason, StepState
from retoma.secret import redact_text
from retoma.words import say

T = TypeVar("T")

INTERVAL = 30.0  # seconds between two polls
ABSENT = 60.0  # seconds a request may be on its way
SOON = 2.0  # seconds until the first look for what was sent without an answer, at most
LOOKS = 3  # whether work that was stopped has ended, before its job waits for that outside
PAUSE = 1.0  # seconds between two of them, at most
OVER = (StepState.FAILED, StepState.ENDED)
TIMEOUT = 24 * 3600.0  # nothing is asked after for ever
# What is raised by the code that asks, whatever was answered: to ask again would raise it again.
BUGS = (ArithmeticError, AssertionError, AttributeError, NameError, TypeError)


class Edge(StrEnum):
    """Where a status of remote work leads."""

    GOING = "going"  # ask again later
    DONE = "done"
    FAILED = "failed"
    GONE = "gone"  # the other side no longer has it, or never had
    STOPPED = "stopped"  # somebody stopped it


@dataclass(frozen=True, slots=True)
class Status:
    """What the other side said of its work; `key`: the one it was sent under, where it tells."""

    status: str
    value: Any = None
    progress: float | None = None
    note: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Absent:
    """What a search found instead of the work: `why` it certainly does not run, and the code of that
    failure. `arrived`: the other side had it, so that nothing may still be on its way."""

    why: str
    code: str = "remote_gone"
    arrived: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """One kind of work on somebody else's machine.

    `send(key, payload)` starts it and returns a handle. Where it raises Transient or Permanent, it
    is known not to have been started; after any other error nobody knows.
    `ask(handle)` returns a Status, and `statuses` says where each leads: an unknown one leads
    nowhere, the work is asked after until `timeout`.
    `find(key)` returns the handle of what was sent under a key, None where there is no such work:
    that is believed once `absent_after` has passed, for what was sent may still be on its way.
    `stop(handle)` asks the other side to stop; it has stopped when `ask` says so.
    `returns`: the type of the value; None where it is plain JSON.
    """

    send: Callable[[str, Any], Awaitable[Any]]
    ask: Callable[[Any], Awaitable[Status]]
    statuses: Mapping[str, Edge]
    find: Callable[[str], Awaitable[Any]] | None = None
    stop: Callable[[Any], Awaitable[Any]] | None = None
    failure: Callable[[Status], Exception] | None = None
    interval: Any = INTERVAL
    timeout: Any = TIMEOUT
    stall: Any = None
    absent_after: Any = ABSENT
    returns: Any = None
    _lengths: tuple[float, float, float | None, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        lengths = (
            _positive("interval", self.interval),
            _positive("timeout", self.timeout),
            None if self.stall is None else _positive("stall", self.stall),
            seconds(self.absent_after),
        )
        object.__setattr__(self, "_lengths", lengths)
        if Edge.DONE not in self.statuses.values():
            raise BadInput(
                say("no status of this remote leads to done: it could never end well")
            )

    @property
    def every(self) -> float:
        return self._lengths[0]

    @property
    def believed_absent(self) -> float:
        return self._lengths[3]

    def edge(self, status: Status) -> Edge:
        """A status that is not in the table ends nothing."""
        return self.statuses.get(status.status, Edge.GOING)

    def overdue(self, age: float, quiet: float) -> str | None:
        """The code of what took too long, if anything did."""
        _, timeout, stall, _ = self._lengths
        if age > timeout:
            return "remote_timeout"
        return "remote_stalled" if stall is not None and quiet > stall else None

    def error(self, status: Status) -> Exception:
        if self.failure is not None:
            return self.failure(status)
        text = say("the remote work ended {status}", status=status.status)
        if status.note:
            text = say("{head}: {tail}", head=text, tail=status.note)
        return Transient(text, code="remote_failed")


class Hands(Protocol):
    """What the context does for a call of remote work."""

    memory: Memory

    @property
    def turn(self) -> list[int]:
        """The generation and the attempt, which a poll does not change."""

    async def keep(self, step: StepId, text: str | None, state: StepState) -> None:
        """Commit a step in this state, or raise LeaseLost."""

    async def may_go_out(self) -> None:
        """Return when something may be started under this lease; raise when never again."""

    def tell(self, name: str, share: float | None, note: str | None) -> None:
        """How far the work is; written down when the story is left."""

    def holds_remote_work(self) -> bool: ...

    def remote_steps(self) -> Iterable[SavedStep]:
        """All that was ever sent for this job, as it stands by now."""

    async def leave(self, wish: Snooze | Park | None) -> Never:
        """Leave the story as soon as its other branches wait as well."""

    async def pause(self, seconds: float) -> None: ...

    async def cancel_now(self) -> Never:
        """The job ends here, canceled."""


class Call:
    """One `ctx.remote`, told from the top at each claim."""

    def __init__(
        self, hands: Hands, remote: Remote, name: str, version: int, prefix: str
    ) -> None:
        self._hands = hands
        self._remote = remote
        self._value = StepId(name, version)
        self._name = f"{REMOTE}{name}"
        self._prefix = prefix
        sent = (s for s in hands.remote_steps() if s.id[:2] == (self._name, version))
        self._last = max(sent, key=lambda step: int(step.id.key), default=None)

    async def result(self, payload: Any) -> str:
        """What the work gave, once it is done; until then the story is left, to be told again."""
        if self._last is not None and self._last.state is StepState.BEGUN:
            await self._find_again(self._last)
        last = self._last
        if last is None or last.state in OVER:
            await self._leave_if_canceled()
            failed = None if last is None else self._failure_of(last)
            if failed is not None:
                raise failed
            return await self._send(payload)
        return await self._ask(last)

    async def close(self) -> None:
        """The value was kept; so its work is over, also where we stopped before we could say so."""
        if self._last is not None and self._last.state is StepState.SAVED:
            await self._end(self._last, {"status": "done"})
            await self._leave_if_canceled()

    async def _leave_if_canceled(self) -> None:
        """Once its remote work is over, a job that was taken up to have that stopped ends."""
        if self._hands.memory.canceling:
            if self._hands.holds_remote_work():
                await self._hands.leave(None)  # another branch has its own stopped first
            await self._hands.cancel_now()

    async def _keep(self, step: StepId, text: str | None, state: StepState) -> None:
        # Cut off while this is written, nobody would know of it: of an intent that nobody then
        # sees end, or of an end for which the story would be told once more.
        await _not_cut_off(self._kept(step, text, state))

    async def _kept(self, step: StepId, text: str | None, state: StepState) -> None:
        kept = SavedStep(step, state, text)
        if state is StepState.BEGUN:
            self._last = kept  # whoever stops the call before the answer looks for the work
        await self._hands.keep(step, text, state)
        self._last = kept

    # — sending —

    async def _send(self, payload: Any) -> Never:
        step = self._next()
        await self._keep(step, None, StepState.BEGUN)
        await self._hands.may_go_out()
        if crashpoint.live:
            crashpoint("remote.before_send")
        await self._hands.leave(await _not_cut_off(self._go_out(step, payload)))

    async def _go_out(self, step: StepId, payload: Any) -> Snooze | Park:
        try:
            handle = await self._remote.send(self._key(step), payload)
        except (Transient, Permanent) as error:
            await self._keep(step, self._refusal(error), StepState.FAILED)
            raise
        except Exception as error:  # noqa: BLE001 — whether it was sent is not known
            return await self._unsure(step, error)
        if crashpoint.live:
            crashpoint("remote.after_send")
        await self._keep(step, checked_handle(handle), StepState.SAVED)
        return Snooze(self._remote.every)

    def _next(self) -> StepId:
        number = 1 if self._last is None else int(self._last.id.key) + 1
        return StepId(self._name, self._value.version, str(number))

    def _key(self, step: StepId) -> str:
        return f"{self._prefix}-{self._value.name}-{step.version}-{step.key}"

    # — what failed stays so for the rest of its attempt —

    def _refusal(self, error: Transient | Permanent) -> str:
        told = {"error": redact_text(str(error)), "code": error.code, "turn": self._hands.turn}
        return encode({**told, "permanent": isinstance(error, Permanent)})

    def _failure_of(self, over: SavedStep) -> Exception | None:
        """The story may have caught it and gone on: told again, it must find it again. The next
        attempt is free to send."""
        told = decode(over.value or "null")
        if not isinstance(told, dict) or told.get("turn") != self._hands.turn:
            return None
        if "edge" in told:
            status = Status(told["status"], told.get("value"), note=told.get("note"))
            return self._error(Edge(told["edge"]), status, told.get("late"))
        if told["permanent"]:
            return Permanent(told["error"], code=told["code"])
        return Transient(told["error"], code=told["code"])

    # — finding it again —

    async def _unsure(self, step: StepId, error: Exception) -> Snooze | Park:
        """No failure of the job yet: the next claim looks for the work."""
        # That it was tried here: if it never arrived, that is this attempt's failure.
        await self._keep(
            step, encode({"error": redact_text(str(error))[:200]}), StepState.BEGUN
        )
        if self._remote.find is None:
            return _nobody_knows(
                say("sent under the key {key}: {error}", key=self._key(step), error=error)
            )
        return Snooze(min(self._remote.every, SOON))

    async def _find_again(self, begun: SavedStep) -> None:
        """The work an earlier claim was about to send, as far as it got."""
        unknown = await self._look_up(begun)
        if unknown is not None:
            await self._hands.leave(unknown)

    async def _look_up(self, begun: SavedStep) -> Snooze | Park | None:
        """None once it is known: found, or known not to be there."""
        key = self._key(begun.id)
        if self._remote.find is None:
            return _nobody_knows(
                say("its runner stopped while it was being sent under the key {key}", key=key)
            )
        found = await self._remote.find(key)
        too_early = self._remote.believed_absent - begun.age
        on_its_way = found is None or (isinstance(found, Absent) and not found.arrived)
        if on_its_way and too_early > 0:
            return Snooze(too_early)
        if found is None or isinstance(found, Absent):
            unknown = Absent(
                say("nothing is known there of what was sent under {key}", key=key)
            )
            error = Transient((found or unknown).why, code=(found or unknown).code)
            # A runner that stopped before it knew is no failure of the job: it is sent at once.
            free = begun.value is None and on_its_way
            told = encode({"found": None}) if free else self._refusal(error)
            await self._keep(begun.id, told, StepState.FAILED)
            return None
        await self._keep(begun.id, checked_handle(found), StepState.SAVED)
        return None

    # — asking —

    async def _ask(self, sent: SavedStep) -> str:
        late = self._remote.overdue(sent.age, self._hands.memory.quiet)
        stop = late is not None or self._hands.memory.canceling
        status = await self._said(sent, stop=stop)
        if isinstance(status, Park | Snooze):
            return await self._hands.leave(status)
        edge = Edge.GOING if status is None else self._remote.edge(status)
        if status is None or edge is Edge.GOING:
            return await self._hands.leave(await self._later(sent, status, late))
        if edge is not Edge.DONE:
            await self._end(sent, self._failed(edge, status, late))
            await self._leave_if_canceled()
            raise self._error(edge, status, late)
        text = encode(status.value, self._remote.returns)
        await self._hands.keep(self._value, text, StepState.SAVED)
        await self._end(sent, {"status": status.status})
        await self._leave_if_canceled()
        return text

    async def _said(self, sent: SavedStep, *, stop: bool) -> Status | Snooze | Park | None:
        """What the other side says of our work, once it was told to stop if that is wished."""
        handle = decode(sent.value or "null")
        status = await self._heard(handle)
        if status is not None and status.key not in (None, self._key(sent.id)):
            return await self._find_ours(sent, handle, status)
        if not stop or (status is not None and self._remote.edge(status) is not Edge.GOING):
            return status
        await self._stop(handle)
        return await self._heard(handle)

    def _failed(self, edge: Edge, status: Status, late: str | None) -> dict[str, Any]:
        told = {"status": status.status, "note": status.note, "edge": edge, "late": late}
        try:
            encode(status.value)
        except Unstorable:
            return {**told, "turn": self._hands.turn}
        return {**told, "value": status.value, "turn": self._hands.turn}

    async def _heard(self, handle: Any) -> Status | None:
        """What the other side says; None where it says nothing: that is no news, not bad news."""
        try:
            status = await self._remote.ask(handle)
        except Permanent:
            raise
        except Exception as error:  # noqa: BLE001 — bounded by the timeout of the work
            self._tell(
                self._hands.memory.progress, say("no answer: {error}", error=error)[:200]
            )
            return None
        if not isinstance(status, Status):
            raise BadInput(say("ask must return a Status, not {status!r}", status=status))
        return status

    async def _find_ours(self, sent: SavedStep, handle: Any, status: Status) -> Snooze | Park:
        """The other side gave a handle twice: this is somebody else's work, ours has another."""
        key = self._key(sent.id)
        found = None if self._remote.find is None else await self._remote.find(key)
        if found is None or found == handle:
            return _nobody_knows(
                f"its handle stands for work under the key {status.key}, ours is {key}"
            )
        await self._keep(sent.id, checked_handle(found), StepState.SAVED)
        return Snooze(self._remote.every)

    async def _later(
        self, sent: SavedStep, status: Status | None, late: str | None
    ) -> Snooze | Park:
        """Still going. It is never sent again beside itself: what cannot be stopped is a person's."""
        if late is not None and (status is None or self._remote.stop is None):
            if self._hands.memory.canceling:
                await self._end(sent, {"status": late})
                await self._leave_if_canceled()
            return _nobody_knows(f"{late}: it was not seen to end")
        if status is not None:
            note = status.note
            if status.status not in self._remote.statuses:
                note = f"its status {status.status!r} is in no table"[:200]
            if status.progress is not None or note is not None:
                self._tell(status.progress, note)
        return Snooze(self._remote.every)

    def _tell(self, share: float | None, note: str | None) -> None:
        self._hands.tell(self._value.name, share, note)

    async def _stop(self, handle: Any) -> None:
        if self._remote.stop is None:
            return
        if crashpoint.live:
            crashpoint("remote.before_stop")
        try:
            await self._remote.stop(handle)
        except Exception as error:  # noqa: BLE001 — asked again at the next poll
            self._tell(
                self._hands.memory.progress,
                say("it could not be stopped: {error}", error=error)[:200],
            )
        if crashpoint.live:
            crashpoint("remote.after_stop")

    async def _end(self, sent: SavedStep, told: dict[str, Any]) -> None:
        await self._keep(sent.id, encode(told), StepState.ENDED)

    def _error(self, edge: Edge, status: Status, late: str | None) -> Exception:
        if edge is Edge.FAILED and late is None:
            return self._remote.error(status)
        return Transient(
            say("the remote work ended {status!r}", status=status.status),
            code=late or f"remote_{edge}",
        )

    # — stopping what the story has left behind —

    async def ended(self) -> Snooze | Park | None:
        """Have the work stopped; None once it is seen to be over, else what to wait for."""
        try:
            if self._last is not None and self._last.state is StepState.BEGUN:
                unknown = await self._look_up(self._last)
                if unknown is not None:
                    return unknown
            sent = self._last
            return None if sent is None or sent.state in OVER else await self._stopped(sent)
        except LeaseLost:
            raise
        except (Permanent, BadInput, *BUGS) as error:
            return _nobody_knows(str(error))
        except Exception as error:  # noqa: BLE001 — no answer is no news; bounded by the timeout
            return self._later_or_never(
                self._last, say("no answer: {error}", error=error)[:200]
            )

    async def _stopped(self, sent: SavedStep) -> Snooze | Park | None:
        for look in range(LOOKS):
            if look:
                await self._hands.pause(min(self._remote.every, PAUSE))
            status = await self._said(sent, stop=look == 0)
            if isinstance(status, Snooze | Park):
                return status
            if status is not None and self._remote.edge(status) is not Edge.GOING:
                await self._end(sent, {"status": status.status, "abandoned": True})
                return None
        return self._later_or_never(sent, say("it was not seen to end"))

    def _later_or_never(self, work: SavedStep | None, why: str) -> Snooze | Park:
        late = work is not None and self._remote.overdue(work.age, 0.0) is not None
        return _nobody_knows(why) if late else Snooze(self._remote.every)


async def _not_cut_off(work: Coroutine[Any, Any, T]) -> T:
    """Who is stopped meanwhile learns so afterwards: whether it arrived would be known to nobody."""
    task = asyncio.ensure_future(work)
    stopped: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            stopped = error
    if stopped is not None:
        _ = task.cancelled() or task.exception()
        raise stopped
    return task.result()


def _nobody_knows(why: str) -> Park:
    return Park(
        say(
            "{why}; whether it still runs, somebody must say: it is gone, or it is this one",
            why=why,
        ),
        ParkReason.UNKNOWN_REMOTE,
    )


def checked_handle(handle: Any) -> str:
    """A handle as it is kept."""
    try:
        text = encode(handle)
    except Unstorable as error:
        raise Permanent(
            say("the handle cannot be kept: {error}", error=error), code="bad_handle"
        ) from error
    if len(text) > HANDLE or handle is None:
        raise Permanent(
            say(
                "a handle is a value of at most {most} characters, not {text}",
                most=HANDLE,
                text=text[:80],
            ),
            code="bad_handle",
        )
    return text


def _positive(what: str, value: Any) -> float:
    length = seconds(value)
    if not length:
        raise BadInput(say("{what}: it must be longer than nothing", what=what))
    return length
