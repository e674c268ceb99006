"""Token buckets shared by all runners; each reserves a handful at a time."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from retoma.db import Transaction
from retoma.engine.rules.adaptive_rate import (
    START,
    Observed,
    RateState,
    burst_of,
    next_rate,
    pause_after,
)
from retoma.engine.rules.errors import BadInput, NotFound
from retoma.engine.store.rows import tell
from retoma.engine.store.verb import SQL
from retoma.words import say

AHEAD = 0.1  # seconds' worth that one runner reserves at once, and for as long
SHARE = 0.25  # of the burst that is reserved at most
MOST = 1e6  # calls at once under a rate that nobody has set: what a call may cost at most
RECORDED = 2.0  # times as much or as little as the audit log says: then it is recorded again
LONG_PAUSE = 60.0  # seconds: a pause that people want to find in the audit log


@dataclass(frozen=True, slots=True)
class Grant:
    """Tokens handed to a runner, and how long until there are more."""

    tokens: int
    wait: float  # seconds
    fresh: float  # seconds in which they may be used
    cuts: int = 0  # of an adaptive rate: which of its rates permits them


@dataclass(frozen=True, slots=True)
class Refusals:
    """Calls that a service refused because they were too many."""

    n: int
    cuts: int  # the latest rate that permitted one of them
    asked: float | None = None  # seconds that the service asked us to wait


@dataclass(frozen=True, slots=True)
class RateSeen:
    """One rate as it stands."""

    key: str
    per_second: float
    burst: float
    tokens: float
    adaptive: bool = False
    bound: float | None = None  # calls a second that a person allows
    ceiling: float | None = None  # where an adaptive rate stays; None: nothing was refused
    refused: int = 0  # calls, ever
    refused_at: datetime | None = None
    paused_until: datetime | None = None  # the service asked us to wait


@dataclass(frozen=True, slots=True)
class _Bucket:
    """A rate, its row locked."""

    saved: float  # tokens, were there no bound
    burst: float
    counted: Any  # up to when; a time as the database gives it
    pause: float  # seconds in which nothing is permitted
    adaptive: bool
    bound: float | None
    elapsed: float  # seconds since growth was counted last
    recorded: float | None
    state: RateState

    @property
    def at_once(self) -> float:
        if not self.adaptive:
            return self.burst
        trusted = self.bound is not None and self.state.rate >= self.bound
        return burst_of(self.state, burst=self.burst, trusted=trusted)


def put_rate(tx: Transaction, key: str, rate: float, burst: float, *, actor: str) -> None:
    tx.run(SQL.put_rate, key=key, rate=rate, burst=burst)
    tell(tx, actor=actor, verb="rate.set", subject=f"{key}: {rate:g}/s, burst {burst:g}")


def reserve(
    tx: Transaction,
    key: str,
    wanted: int,
    others: int = 0,
    seen: Observed | None = None,
    *,
    actor: str = "",
) -> Grant:
    """Tokens for one who waits, and for others who do: fewer where there are fewer.

    Some more for what follows where the bucket is more than half full. What may be reserved and not
    yet used does not fit into the bucket besides: together they are never more than the burst. `seen`:
    the rate is adaptive, and this came of earlier calls.
    """
    bucket = _locked(tx, key, adopt=seen is not None)
    if wanted > bucket.burst:
        raise BadInput(
            say(
                "{key}: {n} at once is more than its burst of {burst:g}: it would wait for ever",
                key=key,
                n=wanted,
                burst=bucket.burst,
            )
        )
    burst = max(bucket.at_once, wanted)
    ahead = min(bucket.state.rate * AHEAD, burst * SHARE)
    most = max(burst - ahead, wanted)
    have = min(bucket.saved, most)
    more = min(max(others, have - wanted - most / 2), ahead)
    granted = min(int(have), wanted + max(int(more), 0))
    state = bucket.state
    if seen is None:
        tx.run(SQL.spend_tokens, key=key, left=have - granted, counted=bucket.counted)
    else:
        state = _adapted(tx, key, bucket, seen, have - granted, wanted > have, actor)
    wait = bucket.pause + max(wanted - have, 0.0) / state.rate
    return Grant(granted, wait, ahead / state.rate, state.cuts)


def report(
    tx: Transaction, key: str, seen: Observed, refusals: Refusals, *, actor: str
) -> Grant:
    """What the service refused slows everybody down; nobody calls it before the time it asks for."""
    bucket = _locked(tx, key, adopt=True)
    refused = refusals.cuts >= bucket.state.cuts
    have = min(bucket.saved, bucket.at_once)
    state = _adapted(tx, key, bucket, replace(seen, refused=refused), have, False, actor)
    pause = refusals.asked
    if pause is None and refused:
        pause = pause_after(state, None)
    tx.run(SQL.pause_rate, key=key, refused=refusals.n, pause=pause or 0.0)
    if pause is not None and pause >= LONG_PAUSE > bucket.pause:
        tell(tx, actor=actor, verb="rate.paused", subject=f"{key}: {pause:g} s")
    return Grant(0, max(pause or 0.0, bucket.pause), 0.0, state.cuts)


def list_rates(tx: Transaction) -> list[RateSeen]:
    return [_with_burst(seen) for seen in tx.all(SQL.list_rates, into=RateSeen)]


def _locked(tx: Transaction, key: str, *, adopt: bool) -> _Bucket:
    bucket = _bucket(tx, key)
    if adopt and (bucket is None or not bucket.adaptive):
        tx.run(SQL.adopt_rate, key=key, start=START, burst=MOST)
        bucket = _bucket(tx, key)
    if bucket is None:
        raise NotFound(say("no rate is called {key!r}", key=key))
    return bucket


def _bucket(tx: Transaction, key: str) -> _Bucket | None:
    row = tx.one(SQL.count_tokens, key=key)
    if row is None:
        return None
    saved, rate, burst, counted, pause, adaptive, bound, *learned, elapsed, recorded = row
    ceiling, cuts, passed, blocked, usual = learned
    state = RateState(
        rate=rate, ceiling=ceiling, cuts=cuts, passed=passed, blocked=blocked, usual=usual
    )
    return _Bucket(
        saved, burst, counted, pause, bool(adaptive), bound, elapsed or 0.0, recorded, state
    )


def _adapted(
    tx: Transaction,
    key: str,
    bucket: _Bucket,
    seen: Observed,
    left: float,
    waited: bool,
    actor: str,
) -> RateState:
    """Write down what follows from what was seen."""
    before = bucket.state
    most = float("inf") if bucket.bound is None else bucket.bound
    seen = replace(seen, elapsed=bucket.elapsed, waited=waited)
    state = next_rate(before, seen, most=most)
    recorded = bucket.recorded or before.rate
    if not recorded / RECORDED < state.rate < recorded * RECORDED:
        subject = f"{key}: {state.rate:.3g}/s, was {recorded:.3g}/s"
        tell(tx, actor=actor, verb="rate.adapted", subject=subject)
        recorded = state.rate
    tx.run(
        SQL.adapt_rate,
        key=key,
        left=min(left, 0.0) if state.cuts != before.cuts else left,
        counted=bucket.counted,
        rate=state.rate,
        ceiling=state.ceiling,
        cuts=state.cuts,
        passed=state.passed,
        blocked=state.blocked,
        usual=state.usual,
        recorded=recorded,
        looked=int(waited or state.cuts != before.cuts),
    )
    return state


def _with_burst(seen: RateSeen) -> RateSeen:
    """An adaptive rate permits at once what its state does."""
    if not seen.adaptive:
        return seen
    state = RateState(rate=seen.per_second, ceiling=seen.ceiling)
    trusted = seen.bound is not None and seen.per_second >= seen.bound
    return replace(seen, burst=burst_of(state, burst=seen.burst, trusted=trusted))
