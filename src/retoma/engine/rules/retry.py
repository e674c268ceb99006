"""Again, give up, or hold: a pure function of what failed and how often."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from retoma.codec import Undecodable, Unstorable
from retoma.engine.rules.duration import LONGEST
from retoma.engine.rules.errors import (
    ENGINE_CODES,
    Action,
    BadInput,
    Code,
    DuplicateStep,
    ErrorClass,
    LeaseLost,
    Permanent,
    Transient,
    Unsure,
)
from retoma.engine.rules.states import DeadReason, ParkReason
from retoma.words import say

# Seconds, one to a quarter of an hour: a stranger's Retry-After neither spins nor shelves a job.
PATIENCE: Final = (1.0, 900.0)
MOST: Final = 1_000  # attempts: what has failed so often is no longer likely to work


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often a job may fail in one generation, and how long it waits in between."""

    attempts: int = 3
    base: float = 1.0  # seconds before the second attempt
    cap: float = 300.0  # seconds at most: five minutes
    factor: float = 2.0
    jitter: float = 0.5  # share of a wait that chance may take away, so that a herd spreads

    def __post_init__(self) -> None:
        problems = [what for what, well in self._checks() if not well]
        if problems:
            raise BadInput(
                say("{policy}: {problems}", policy=self, problems="; ".join(problems))
            )

    def _checks(self) -> list[tuple[str, bool]]:
        return [
            (
                f"attempts must be a whole number from 1 to {MOST}",
                type(self.attempts) is int and 1 <= self.attempts <= MOST,
            ),
            ("base must be from 0 s to 100 years", 0 <= self.base <= LONGEST),
            ("cap must be from base to 100 years", self.base <= self.cap <= LONGEST),
            ("factor must be finite and at least 1", 1 <= self.factor < math.inf),
            ("jitter must be from 0 to 1", 0 <= self.jitter <= 1),
        ]


@dataclass(frozen=True, slots=True)
class Again:
    """Try again, so many seconds from now."""

    after: float
    code: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Bury it."""

    reason: DeadReason
    code: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Park it until a person has looked."""

    reason: ParkReason
    code: str


Decision = Again | GiveUp | Hold

BURIED_AS: Final[Mapping[str, DeadReason]] = {
    "deadline": DeadReason.DEADLINE,
    "poison": DeadReason.POISON,
    "released_too_often": DeadReason.EXHAUSTED,
}
HELD_AS: Final[Mapping[str, ParkReason]] = {
    "budget": ParkReason.BUDGET,
    "unknown_remote": ParkReason.UNKNOWN_REMOTE,
    "unstorable_result": ParkReason.UNSTORABLE,
}


def decide(
    *,
    failures: int,
    error: BaseException,
    retry: Retry,
    codes: Mapping[str, Code],
    rng: random.Random,
) -> Decision:
    """What follows a failed attempt; `failures` counts this one too.

    An application's `codes` come before the engine's. A code in neither table is taken for what
    its exception says: a Permanent is buried, anything else is tried again.
    """
    name = code_of(error)
    code = codes.get(name) or ENGINE_CODES.get(name)
    match _action(error, code):
        case Action.PARK:
            return Hold(_held_as(name, code), name)
        case Action.BURY:
            return GiveUp(BURIED_AS.get(name, DeadReason.PERMANENT), name)
        case Action.RETRY:
            if failures >= _allowed(retry, code):
                return GiveUp(DeadReason.EXHAUSTED, name)
            return Again(_wait(failures, error, retry, rng), name)
        case unexpected:
            assert_never(unexpected)


def code_of(error: BaseException) -> str:
    """The code an exception stands for; only our own types carry one of their own."""
    match error:
        case Transient() | Permanent() | Unsure():
            return error.code
        case LeaseLost():
            return "lease_lost"
        case DuplicateStep():
            return "duplicate_step"
        case BadInput():
            return "bad_input"
        case Unstorable():
            return "unstorable_result"
        case Undecodable():
            return "bad_payload"
        case TimeoutError():
            return "timeout"
        case _:
            return "exception"


def backoff(failures: int, retry: Retry, rng: random.Random) -> float:
    """Seconds to wait after so many failures: within [base·factorⁿ⁻¹·(1-jitter), cap] (E15)."""
    try:
        full = retry.base * retry.factor ** (failures - 1)
    except OverflowError:
        full = math.inf if retry.base else 0.0
    # At the cap nothing is left to chance; the spread of the earlier waits is still there.
    shortest = min(full * (1 - retry.jitter) if retry.jitter < 1 else 0.0, retry.cap)
    longest = min(full, retry.cap)
    return min(longest, rng.uniform(shortest, longest))


def retry_after(value: float | str | None) -> float | None:
    """A Retry-After in seconds, within what we put up with; None where it says nothing."""
    try:
        asked = float(value) if value is not None else math.nan
    except (TypeError, ValueError, OverflowError):
        return None
    shortest, longest = PATIENCE
    return None if math.isnan(asked) else min(max(asked, shortest), longest)


def _action(error: BaseException, code: Code | None) -> Action:
    # A person must look, whatever the story thought: parking outranks Permanent.
    if code is not None and code.action is Action.PARK:
        return Action.PARK
    if isinstance(error, Permanent):
        return Action.BURY
    return code.action if code is not None else Action.RETRY


def _held_as(name: str, code: Code | None) -> ParkReason:
    by_class = code is not None and code.error_class is ErrorClass.CONFIG
    return HELD_AS.get(name, ParkReason.CONFIG if by_class else ParkReason.OPERATOR)


def _allowed(retry: Retry, code: Code | None) -> int:
    if code is None or code.budget is None:
        return retry.attempts
    return min(retry.attempts, code.budget)


def _wait(failures: int, error: BaseException, retry: Retry, rng: random.Random) -> float:
    """Never sooner than the other side asked, never sooner than our own backoff."""
    own = backoff(failures, retry, rng)
    asked = retry_after(error.retry_after) if isinstance(error, Transient) else None
    return own if asked is None else max(own, asked)
