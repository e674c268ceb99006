"""Decide how often a service is called when nobody has set a rate. Pure: no I/O.

The rate grows while callers wait for it and the service refuses nothing, and shrinks when the service
refuses a call or becomes slow. `ceiling` is where it stays longest: a little below the rate that was
refused last. Growth slows down on the way to the ceiling and speeds up beyond it (the curve of TCP CUBIC,
relative to the ceiling). A rate that got well past its ceiling has learned that the limit was raised.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

START: Final = 5.0  # calls a second before anything is known of a service
SLOWEST: Final = 1 / 60  # calls a second
SEARCH: Final = 2.0  # times as fast after each second, as long as the service has never refused
SEARCH_AGAIN: Final = 1.4  # the same, well past a ceiling that was true once
WELL_PAST: Final = 1.1  # times the ceiling
SCALE: Final = 25.0  # seconds from the ceiling to twice the ceiling, were it not for WELL_PAST
CALLS: Final = 60.0  # calls that SCALE is worth at least: a slow rate looks for more less often
SLOWEST_SCALE: Final = 240.0  # seconds
MANY: Final = 10  # calls that passed since the last cut: then the limit is near
NEAR: Final = (0.92, 0.96)  # of the refused rate: the next rate, the next ceiling
FAR: Final = (0.65, 0.85)  # the same, where the limit is far below
SLOW: Final = 3.0  # times as long as calls usually take
SLOW_BY: Final = 0.2  # seconds: differences below that are noise
USUAL_OF: Final = 200  # calls whose mean duration is the usual one
CROWD: Final = 5  # calls that must agree that the service is slow
PAUSE: Final = 1.0  # seconds after a refusal that names no time
LONGEST_PAUSE: Final = 30.0  # seconds, where each pause ends in another refusal
AT_ONCE: Final = 0.1  # seconds' worth of calls that may come at once
FEWEST_AT_ONCE: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RateState:
    """What is known of a service."""

    rate: float = START  # calls a second
    ceiling: float | None = None  # None: it never refused
    cuts: int = 0  # how often the rate was cut: says under which rate a call was permitted
    passed: int = 0  # calls that the service took since the last cut; MANY at most
    blocked: int = 0  # refusals in a row between which nothing passed
    usual: float | None = None  # seconds that a call usually takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What happened since the last look."""

    elapsed: float = 0.0  # seconds
    waited: bool = False  # somebody wanted more calls than the rate allowed
    passed: int = 0
    timed: int = 0  # calls whose duration is known
    seconds: float = 0.0  # these took together
    refused: bool = False  # a call that was permitted after the last cut


def next_rate(state: RateState, seen: Observed, *, most: float = math.inf) -> RateState:
    """The rate from now on; `most`: what a person allows."""
    passed = min(state.passed + seen.passed, MANY)
    known = replace(state, passed=passed, usual=_usual(state, seen))
    if seen.refused:
        return _refused(known)
    if not seen.waited:
        return known
    if _is_slow(state, seen):
        return _cut(known, NEAR) if known.passed >= MANY else known
    return replace(known, rate=min(_grown(known, seen.elapsed), most))


def pause_after(state: RateState, asked: float | None) -> float:
    """Seconds without a call after a refusal: what the service asks for, else longer each time."""
    if asked is not None:
        return asked
    return min(PAUSE * math.pow(2.0, min(state.blocked, 10)), LONGEST_PAUSE)


def burst_of(state: RateState, *, burst: float, trusted: bool) -> float:
    """Calls that may come at once: few, unless a person set the rate and it was never refused."""
    if trusted and state.ceiling is None:
        return burst
    return min(burst, max(AT_ONCE * state.rate, FEWEST_AT_ONCE))


def _refused(state: RateState) -> RateState:
    if state.cuts and not state.passed:
        # The service takes nothing at all just now: that says nothing of the rate.
        return replace(state, cuts=state.cuts + 1, blocked=state.blocked + 1)
    return _cut(state, NEAR if state.passed >= MANY else FAR)


def _cut(state: RateState, shares: tuple[float, float]) -> RateState:
    rate, ceiling = (max(state.rate * share, SLOWEST) for share in shares)
    cuts = state.cuts + 1
    return replace(state, rate=rate, ceiling=ceiling, cuts=cuts, passed=0, blocked=0)


def _grown(state: RateState, elapsed: float) -> float:
    if state.ceiling is None:
        return state.rate * math.pow(SEARCH, min(elapsed, 1.0))
    # Not for longer than two calls take: what nobody tried meanwhile was not allowed either.
    length = min(elapsed, max(2.0, 2.0 / state.rate))
    if state.rate > WELL_PAST * state.ceiling:
        return state.rate * math.pow(SEARCH_AGAIN, min(length, 2.0))
    scale = min(max(SCALE, CALLS / state.ceiling), SLOWEST_SCALE)
    place = math.cbrt(state.rate / state.ceiling - 1.0) + length / scale
    return state.ceiling * (1.0 + place**3)


def _usual(state: RateState, seen: Observed) -> float | None:
    if not seen.timed:
        return state.usual
    mean = seen.seconds / seen.timed
    if state.usual is None:
        return mean
    return state.usual + (mean - state.usual) * min(seen.timed / USUAL_OF, 1.0)


def _is_slow(state: RateState, seen: Observed) -> bool:
    if state.usual is None or seen.timed < CROWD:
        return False
    mean = seen.seconds / seen.timed
    return mean > SLOW * state.usual and mean > state.usual + SLOW_BY
