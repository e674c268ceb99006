"""How an attempt ends: a returned value, an error or a stop becomes a settlement, and a log line."""

from random import Random
from typing import Any, assert_never

from retoma.codec import decode, encode
from retoma.engine.handlers.kinds import Kind
from retoma.engine.rules import settlement
from retoma.engine.rules.errors import Transient
from retoma.engine.rules.job import RELEASES, Claim
from retoma.engine.rules.outcome import Aside, Outcome, Park, Skip, Snooze, Unwound
from retoma.engine.rules.retry import Again, GiveUp, Hold, code_of, decide
from retoma.engine.rules.settlement import Settlement
from retoma.engine.rules.states import DeadReason, ParkReason, State
from retoma.engine.run.attempt_log import AttemptLog
from retoma.engine.run.error_details import MESSAGE, error_details, printable, short
from retoma.engine.run.stop_request import StopRequest, Why
from retoma.secret import redact_text
from retoma.words import say


class Endings:
    """Decides the end of one attempt; writes nothing to the database."""

    __slots__ = ("_claim", "_kind", "_log", "_rng", "_stop", "seen")

    def __init__(
        self, claim: Claim, kind: Kind, rng: Random, log: AttemptLog, stop: StopRequest
    ) -> None:
        self._claim = claim
        self._kind = kind
        self._rng = rng
        self._log = log
        self._stop = stop
        self.seen: dict[str, object] = {}  # where it stood when its time was up

    def returned(self, value: Any) -> Settlement:
        """The handler returned this."""
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

    def unwound(self, unwound: Unwound) -> Settlement:
        """The handler was left in the middle. The failed call that made it leave stands in the
        timeline, if it was one."""
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
                return self.returned(outcome)

    def failed(self, error: BaseException, *, remote_work: bool) -> Settlement:
        """The handler raised this: retry it, give up, or park it."""
        details = error_details(error) | self.seen
        match decide(
            failures=self._claim.failures,
            error=error,
            retry=self._kind.retry,
            codes=self._kind.codes,
            rng=self._rng,
        ):
            case Again(after, code):
                line = self._log.bind(State.WAITING)
                line.warning("job.failed", code=code, after=after, **short(details))
                return settlement.failed(after, code, details)
            case GiveUp(reason, code):
                return self._given_up(reason, code, details, remote_work=remote_work)
            case Hold(reason, code):
                line = self._log.bind(State.PARKED)
                line.warning("job.parked", code=code, reason=reason, **short(details))
                return settlement.parked(str(details["message"]), reason, code)
            case unexpected:
                assert_never(unexpected)

    def stopped(self, error: BaseException, *, remote_work: bool) -> Settlement | None:
        """It was stopped, and raised this; None where the job is no longer ours."""
        match self._stop.why:
            case Why.LOST:
                return None
            case Why.TIMEOUT:
                late = TimeoutError(self._stop.late)
                return self.failed(_because(late, error), remote_work=remote_work)
            case Why.STALLED:
                stalled = Transient(self._stop.late, code="stalled")
                return self.failed(_because(stalled, error), remote_work=remote_work)
            case Why.DEADLINE:
                return self.out_of_time(error, remote_work=remote_work)
            case Why.CANCEL:
                # Taken up again at once, to stop its remote work first.
                return settlement.snoozed(0) if remote_work else settlement.CANCELED
            case Why.RELEASE:
                return self._released(remote_work=remote_work)
            case None:  # the handler cancelled itself: its own failure
                return self.failed(error, remote_work=remote_work)
            case unexpected:
                assert_never(unexpected)

    def out_of_time(
        self, error: BaseException | None = None, *, remote_work: bool
    ) -> Settlement:
        details = {} if error is None else error_details(error) | self.seen
        details["message"] = say("the job's deadline has passed")
        return self._given_up(DeadReason.DEADLINE, "deadline", details, remote_work=remote_work)

    def troubled(self, error: BaseException) -> Settlement | None:
        """Our own database could not answer: it waits again at no cost; None where it has done so
        too often."""
        if self._claim.released >= RELEASES:
            return None
        line = self._log.bind(State.WAITING)
        line.warning("job.released", error=printable(str(error), MESSAGE))
        return settlement.RELEASED

    def left_to_a_person(self, end: Settlement) -> Settlement:
        """Its remote work may still run, and nobody would ask after it."""
        self._log.bind(State.PARKED).warning("job.parked", end=end.event, code=end.code)
        why: str = say(
            "its story ended ({event}) while its remote work may still run", event=end.event
        )
        message = decode(end.details or "null")
        if isinstance(message, dict) and "message" in message:
            why = say("{head}: {tail}", head=why, tail=message["message"])
        return settlement.parked(why, ParkReason.UNKNOWN_REMOTE, end.code)

    def _released(self, *, remote_work: bool) -> Settlement:
        if self._claim.released < RELEASES:
            return settlement.RELEASED
        message = say("given back {n} times by runners that were leaving", n=RELEASES)
        return self._given_up(
            DeadReason.EXHAUSTED,
            "released_too_often",
            {"message": message},
            remote_work=remote_work,
        )

    def _given_up(
        self, reason: DeadReason, code: str, details: dict[str, object], *, remote_work: bool
    ) -> Settlement:
        if not remote_work:
            self._log.bind(State.DEAD).error(
                "job.buried", code=code, reason=reason, **short(details)
            )
        return settlement.buried(reason, code, details)


def _because(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error
