"""Work on somebody else's machine: how it is started, asked after, found again and stopped.

Before the first byte leaves, the intent is committed under a key of our own. After a crash the work
is found again by its handle, or by that key; it is sent again only where it is known to be absent or
over. Where nobody can tell, a person must (MECHANICS 19, 29; E6).
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Never, Protocol

from retoma.codec import Unstorable, decode, encode
from retoma.db import crashpoint
from retoma.engine.duration import seconds
from retoma.engine.errors import BadInput, Permanent, Transient
from retoma.engine.job import HANDLE, REMOTE, Memory, SavedStep, StepId
from retoma.engine.outcome import Park, Snooze, Unwound
from retoma.engine.states import ParkReason, StepState
from retoma.secret import redact_text
from retoma.words import say

INTERVAL = 30.0  # seconds between two polls
ABSENT = 60.0  # seconds a request may be on its way
TIMEOUT = 24 * 3600.0  # nothing is asked after for ever


class Edge(StrEnum):
    """Where a status of remote work leads."""

    GOING = "going"  # ask again later
    DONE = "done"
    FAILED = "failed"
    GONE = "gone"  # the other side no longer has it, or never had
    STOPPED = "stopped"  # somebody stopped it


@dataclass(frozen=True, slots=True)
class Status:
    """What the other side said of its work."""

    status: str
    value: Any = None
    progress: float | None = None
    note: str | None = None


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
        said = f": {status.note}" if status.note else ""
        return Transient(f"the remote work ended {status.status}{said}", code="remote_failed")


class Hands(Protocol):
    """What the context does for a call of remote work."""

    memory: Memory

    async def keep(self, step: StepId, text: str | None, state: StepState) -> None:
        """Commit a step in this state, or raise LeaseLost."""

    async def may_go_out(self) -> None:
        """Return when something may be started under this lease; raise when never again."""

    async def progress(self, share: float | None, note: str | None) -> None: ...

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
        sent = (s for s in hands.memory.steps if s.id[:2] == (self._name, version))
        self._last = max(sent, key=lambda step: int(step.id.key), default=None)

    async def result(self, payload: Any) -> str:
        """What the work gave, once it is done; until then the story is left, to be told again."""
        last = self._last
        if last is not None and last.state is StepState.BEGUN:
            last = await self._found_again(last)
        if last is None or last.state in (StepState.FAILED, StepState.ENDED):
            return await self._send(payload)
        return await self._ask(last)

    async def close(self) -> None:
        """The value was kept; so its work is over, also where we stopped before we could say so."""
        if self._last is not None and self._last.state is StepState.SAVED:
            await self._end(self._last.id, "done")
            await self._leave_if_canceled()

    async def _leave_if_canceled(self) -> None:
        """Once its remote work is over, a job that was taken up to have that stopped ends."""
        if self._hands.memory.canceling:
            await self._hands.cancel_now()

    # — sending —

    async def _send(self, payload: Any) -> Never:
        await self._leave_if_canceled()
        step = self._next()
        await self._hands.keep(step, None, StepState.BEGUN)
        await self._hands.may_go_out()
        if crashpoint.live:
            crashpoint("remote.before_send")
        try:
            handle = await self._remote.send(self._key(step), payload)
        except (Transient, Permanent) as error:
            await self._hands.keep(
                step, encode({"error": redact_text(str(error))}), StepState.FAILED
            )
            raise
        except Exception as error:
            raise self._unsure(step, error) from error
        if crashpoint.live:
            crashpoint("remote.after_send")
        await self._hands.keep(step, checked_handle(handle), StepState.SAVED)
        raise Unwound(Snooze(self._remote.every))

    def _next(self) -> StepId:
        number = 1 if self._last is None else int(self._last.id.key) + 1
        return StepId(self._name, self._value.version, str(number))

    def _key(self, step: StepId) -> str:
        return f"{self._prefix}-{self._value.name}-{step.version}-{step.key}"

    # — finding it again —

    def _unsure(self, step: StepId, error: Exception) -> Unwound:
        """No failure of the job yet: the next claim looks for the work."""
        if self._remote.find is None:
            return Unwound(_nobody_knows(f"sent under the key {self._key(step)}: {error}"))
        return Unwound(Snooze(self._remote.every))

    async def _found_again(self, begun: SavedStep) -> SavedStep:
        """The work an earlier claim was about to send, as far as it got."""
        key = self._key(begun.id)
        if self._remote.find is None:
            raise Unwound(
                _nobody_knows(f"its runner stopped while it was being sent under the key {key}")
            )
        handle = await self._remote.find(key)
        too_early = self._remote.believed_absent - begun.age
        if handle is None and too_early > 0:
            raise Unwound(Snooze(too_early))
        if handle is None:
            await self._hands.keep(begun.id, encode({"found": None}), StepState.FAILED)
            raise Transient(f"what was sent under {key} never arrived", code="remote_gone")
        text = checked_handle(handle)
        await self._hands.keep(begun.id, text, StepState.SAVED)
        return begun._replace(state=StepState.SAVED, value=text)

    # — asking —

    async def _ask(self, sent: SavedStep) -> str:
        handle = decode(sent.value or "null")
        late = self._remote.overdue(sent.age, self._hands.memory.quiet)
        if late is not None or self._hands.memory.canceling:
            await self._stop(handle)
        status = await self._heard(handle)
        edge = Edge.GOING if status is None else self._remote.edge(status)
        if status is None or edge is Edge.GOING:
            await self._later(sent, status, late)
        elif edge is Edge.DONE:
            text = encode(status.value)
            await self._hands.keep(self._value, text, StepState.SAVED)
            await self._end(sent.id, status.status)
            await self._leave_if_canceled()
            return text
        else:
            await self._end(sent.id, status.status)
            await self._leave_if_canceled()
            raise self._error(edge, status, late)
        raise Unwound(Snooze(self._remote.every))

    async def _heard(self, handle: Any) -> Status | None:
        """What the other side says; None where it says nothing: that is no news, not bad news."""
        try:
            status = await self._remote.ask(handle)
        except Permanent:
            raise
        except Exception as error:  # noqa: BLE001 — bounded by the timeout of the work
            await self._tell(self._hands.memory.progress, f"no answer: {error}"[:200])
            return None
        if not isinstance(status, Status):
            raise BadInput(say("ask must return a Status, not {status!r}", status=status))
        return status

    async def _later(self, sent: SavedStep, status: Status | None, late: str | None) -> None:
        """Still going. It is never sent again beside itself: what cannot be stopped is a person's."""
        if late is not None and (status is None or self._remote.stop is None):
            if self._hands.memory.canceling:
                await self._end(sent.id, late)
                await self._hands.cancel_now()
            raise Unwound(_nobody_knows(f"{late}: it was not seen to end"))
        if status is None:
            return
        note = status.note
        if status.status not in self._remote.statuses:
            note = f"its status {status.status!r} is in no table"[:200]
        if status.progress is not None or note is not None:
            await self._tell(status.progress, note)

    async def _tell(self, share: float | None, note: str | None) -> None:
        """Only what is new: the same words again are no progress, and must not hide a stall."""
        if (share, note) != (self._hands.memory.progress, self._hands.memory.note):
            await self._hands.progress(share, note)

    async def _stop(self, handle: Any) -> None:
        if self._remote.stop is None:
            return
        if crashpoint.live:
            crashpoint("remote.before_stop")
        try:
            await self._remote.stop(handle)
        except Exception as error:  # noqa: BLE001 — asked again at the next poll
            await self._tell(
                self._hands.memory.progress, f"it could not be stopped: {error}"[:200]
            )
        if crashpoint.live:
            crashpoint("remote.after_stop")

    async def _end(self, step: StepId, status: str) -> None:
        await self._hands.keep(step, encode({"status": status}), StepState.ENDED)

    def _error(self, edge: Edge, status: Status, late: str | None) -> Exception:
        if edge is Edge.FAILED and late is None:
            return self._remote.error(status)
        return Transient(
            f"the remote work ended {status.status!r}", code=late or f"remote_{edge}"
        )


def _nobody_knows(why: str) -> Park:
    return Park(
        f"{why}; whether it still runs, somebody must say: it is gone, or it is this one",
        ParkReason.UNKNOWN_REMOTE,
    )


def checked_handle(handle: Any) -> str:
    """A handle as it is kept."""
    try:
        text = encode(handle)
    except Unstorable as error:
        raise Permanent(f"the handle cannot be kept: {error}", code="bad_handle") from error
    if len(text) > HANDLE or handle is None:
        raise Permanent(
            f"a handle is a value of at most {HANDLE} characters, not {text[:80]}",
            code="bad_handle",
        )
    return text


def _positive(what: str, value: Any) -> float:
    length = seconds(value)
    if not length:
        raise BadInput(say("{what}: it must be longer than nothing", what=what))
    return length
