"""The rule that finds a rate by trying, played against services whose limits nobody tells it."""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from retoma.engine.rules.adaptive_rate import (
    FAR,
    LONGEST_PAUSE,
    MANY,
    NEAR,
    SLOWEST,
    START,
    Observed,
    RateState,
    burst_of,
    next_rate,
    pause_after,
)

Limits = Sequence[tuple[float, float]]  # until when (seconds), calls a second
END = 300.0  # seconds: five minutes
WAITED = Observed(elapsed=1.0, waited=True)
REFUSED = Observed(refused=True)


# --- One decision


def test_a_rate_that_nobody_waits_for_stays():
    state = RateState(rate=7.0, ceiling=10.0)
    assert state == next_rate(state, Observed(elapsed=100.0))


def test_before_the_first_refusal_it_doubles_each_second():
    assert 2 * START == next_rate(RateState(), WAITED).rate


def test_a_refusal_near_the_limit_costs_little_and_one_far_from_it_much():
    near = next_rate(RateState(rate=10.0, passed=MANY), REFUSED)
    far = next_rate(RateState(rate=10.0, passed=MANY - 1), REFUSED)
    assert (10 * NEAR[0], 10 * NEAR[1]) == (near.rate, near.ceiling)
    assert (10 * FAR[0], 10 * FAR[1]) == (far.rate, far.ceiling)


def test_calls_that_pass_with_the_refusal_count():
    seen = replace(REFUSED, passed=MANY)
    assert 10 * NEAR[0] == next_rate(RateState(rate=10.0), seen).rate


def test_a_service_that_takes_nothing_says_nothing_of_the_rate():
    state = next_rate(RateState(rate=10.0, passed=MANY), REFUSED)
    again = next_rate(state, REFUSED)
    assert (state.rate, state.ceiling, 1) == (again.rate, again.ceiling, again.blocked)


def test_pauses_grow_while_each_ends_in_a_refusal():
    waits = [pause_after(RateState(blocked=n), None) for n in (0, 1, 2, 3, 20)]
    assert [1.0, 2.0, 4.0, 8.0, LONGEST_PAUSE] == waits


def test_the_wait_that_a_service_asks_for_is_kept():
    assert 7.0 == pause_after(RateState(blocked=5), 7.0)


def test_no_refusals_make_it_slower_than_the_slowest():
    state = RateState()
    for _ in range(100):
        state = next_rate(state, replace(REFUSED, passed=1))
    assert SLOWEST == state.rate


def test_growth_is_slow_at_the_ceiling_and_fast_well_past_it():
    def growth(rate: float) -> float:
        return next_rate(RateState(rate=rate, ceiling=100.0), WAITED).rate - rate

    assert growth(100.0) < 0.1 < growth(92.0)
    assert growth(100.0) < growth(105.0) < growth(111.0)


def test_growth_depends_on_the_time_and_not_on_how_often_it_is_counted():
    once = next_rate(RateState(rate=92.0, ceiling=100.0), WAITED).rate
    state = RateState(rate=92.0, ceiling=100.0)
    for _ in range(100):
        state = next_rate(state, Observed(elapsed=0.01, waited=True))
    assert state.rate == pytest.approx(once)


def test_a_night_without_calls_is_no_growth():
    state = RateState(rate=10.0, ceiling=10.0)
    assert next_rate(state, Observed(elapsed=40_000.0, waited=True)).rate < 10.1


def test_it_never_gets_past_what_a_person_allows():
    assert 6.0 == next_rate(RateState(rate=5.9), WAITED, most=6.0).rate


def test_a_service_that_becomes_slow_is_called_less_often():
    state = RateState(rate=10.0, ceiling=20.0, passed=MANY, usual=0.3)
    slow = Observed(elapsed=1.0, waited=True, passed=5, timed=5, seconds=5 * 2.0)
    once = next_rate(state, slow)
    assert 10 * NEAR[0] == once.rate
    # Not again before it is known how the service does at this rate; and it does not grow.
    assert once.rate == next_rate(once, replace(slow, passed=0)).rate


def test_calls_that_are_always_that_slow_are_not_slow():
    state = RateState(rate=10.0, passed=MANY, usual=0.3)
    for _ in range(200):
        seen = Observed(elapsed=0.5, waited=True, passed=5, timed=5, seconds=5 * 2.0)
        state = next_rate(state, seen)
    assert state.usual == pytest.approx(2.0, rel=0.1)
    assert state.rate > 10.0


@pytest.mark.parametrize("mean", [0.85, 0.001])
def test_one_long_call_or_a_few_milliseconds_are_no_sign(mean):
    state = RateState(rate=10.0, ceiling=20.0, passed=MANY, usual=0.3 if mean > 0.1 else 0.0001)
    seen = Observed(elapsed=1.0, waited=True, passed=5, timed=5, seconds=5 * mean)
    assert next_rate(state, seen).rate > 10.0


def test_few_calls_come_at_once_unless_a_person_set_the_rate():
    assert 500.0 == burst_of(RateState(rate=500.0), burst=500.0, trusted=True)
    assert 50.0 == burst_of(RateState(rate=500.0), burst=500.0, trusted=False)
    assert 2.0 == burst_of(RateState(rate=1.0, ceiling=1.0), burst=500.0, trusted=True)


# --- Five minutes of them


@dataclass
class Service:
    """Takes so many calls a second: a bucket, or a window that slides, of `burst` seconds' worth."""

    limits: Limits
    burst: float = 1.0
    window: bool = False
    tokens: float | None = None
    at: float = 0.0
    taken: list[float] = field(default_factory=list)

    def limit(self, now: float) -> float:
        return next(limit for until, limit in self.limits if now < until)

    def takes(self, now: float) -> bool:
        limit = self.limit(now)
        if self.window:
            self.taken = [at for at in self.taken if at > now - self.burst]
            if len(self.taken) >= limit * self.burst:
                return False
            self.taken.append(now)
            return True
        most = max(limit * self.burst, 1.0)
        had = most if self.tokens is None else self.tokens + limit * (now - self.at)
        self.tokens, self.at = min(had, most), now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


@dataclass
class Played:
    took: list[int]  # by second
    refused: list[int]
    rates: list[float]

    def share_refused(self) -> float:
        return sum(self.refused) / (sum(self.took) + sum(self.refused))

    def share_used(self, limits: Limits) -> float:
        untils = [0.0, *(until for until, _ in limits)]
        spans = zip(untils, untils[1:], limits, strict=False)
        return sum(self.took) / sum((b - a) * limit for a, b, (_, limit) in spans)


def play(service: Service, asks: float | None, seed: int, slots: int = 100) -> Played:
    """All runners together want more than there is, for five minutes; nobody has set a rate."""
    rng, state = Random(seed), RateState()
    tokens, counted, looked, now = 1.0, 0.0, 0.0, 0.0
    answers: list[tuple[float, bool, int]] = []
    seconds = range(int(END) + 1)
    played = Played([0 for _ in seconds], [0 for _ in seconds], [0.0 for _ in seconds])
    passed = 0
    while True:
        have = tokens + state.rate * max(now - counted, 0.0)
        due = math.inf
        if len(answers) < slots:
            due = max(now, counted) + max(1.0 - have, 0.0) / state.rate + rng.uniform(0, 0.005)
        if min(due, answers[0][0] if answers else math.inf) >= END:
            return played
        if due <= (answers[0][0] if answers else math.inf):
            burst = burst_of(state, burst=1e6, trusted=False)
            tokens = min(tokens + state.rate * max(due - counted, 0.0), burst) - 1.0
            now, counted = due, max(counted, due)
            seen = Observed(elapsed=max(now - looked, 0.0), waited=True, passed=passed)
            state, looked, passed = next_rate(state, seen), max(looked, now), 0
            takes = service.takes(now)
            (played.took if takes else played.refused)[int(now)] += 1
            played.rates[int(now)] = state.rate
            took = rng.uniform(0.1, 0.5) if takes else 0.05
            heapq.heappush(answers, (now + took, takes, state.cuts))
            continue
        now, taken, cuts = heapq.heappop(answers)
        if taken:
            passed += 1
            continue
        refused = cuts >= state.cuts
        state = next_rate(state, Observed(passed=passed, refused=refused))
        pause = asks if asks is not None or not refused else pause_after(state, None)
        passed, tokens = 0, min(tokens, 0.0)
        counted = max(counted, now + (pause or 0.0))
        looked = max(looked, counted)


CHANGES: dict[str, Limits] = {
    "20 → 5 → 40": [(100, 20), (200, 5), (END, 40)],
    "10 → 2 → 8": [(100, 10), (200, 2), (END, 8)],
    "100 → 10 → 50": [(100, 100), (200, 10), (END, 50)],
    "10 → 40 → 5": [(100, 10), (200, 40), (END, 5)],
}


@pytest.mark.parametrize("asks", [None, 1.0])
@pytest.mark.parametrize("changes", CHANGES)
def test_a_limit_that_changes_twice_in_five_minutes_is_found_each_time(changes, asks):
    limits = CHANGES[changes]
    for seed in range(3):
        played = play(Service(limits), asks, seed)

        assert played.share_refused() <= 0.05
        assert 0.85 <= played.share_used(limits)


@pytest.mark.parametrize("window", [False, True])
@pytest.mark.parametrize("limit", [1.0, 5.0, 50.0])
def test_a_limit_that_stays_is_kept_to(limit, window):
    limits = [(END, limit)]
    for seed in range(3):
        played = play(Service(limits, window=window), 1.0, seed)

        assert played.share_refused() <= 0.05
        assert 0.85 <= played.share_used(limits)


@pytest.mark.parametrize("limits", CHANGES.values())
def test_it_converges_within_a_minute(limits):
    """A minute after each change, and from then on: the limit is kept to, and used."""
    played = play(Service(limits), 1.0, seed=1)
    begins = [0.0, *(until for until, _ in limits[:-1])]
    for begin, (until, limit) in zip(begins, limits, strict=True):
        span = slice(int(begin) + 60, int(until))
        assert sum(played.refused[span]) <= 0.05 * sum(played.took[span])
        assert 0.85 * limit <= sum(played.took[span]) / (until - begin - 60)


def test_a_service_that_blocks_for_long_is_left_alone_meanwhile():
    """Ten seconds' worth at once, then nothing, without saying for how long."""
    played = play(Service([(END, 10.0)], burst=10.0, window=True), None, seed=1)
    assert played.share_refused() <= 0.05
    assert 0.85 <= played.share_used([(END, 10.0)])
