"""Again, give up or hold: what follows a failed attempt (E9, E15)."""

import math
from random import Random
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from retoma.codec import Undecodable, Unstorable
from retoma.engine.rules.errors import (
    ENGINE_CODES,
    Action,
    BadInput,
    Code,
    ErrorClass,
    LeaseLost,
    Permanent,
    Transient,
    table,
)
from retoma.engine.rules.retry import (
    Again,
    Decision,
    GiveUp,
    Hold,
    Retry,
    backoff,
    code_of,
    decide,
    retry_after,
)
from retoma.engine.rules.states import DeadReason, ParkReason

CODES = table(
    Code("ERROR202", ErrorClass.TRANSIENT, Action.RETRY, 2, "The worker was lost."),
    Code("ERROR303", ErrorClass.CONFIG, Action.PARK, None, "The writer refused our request."),
    Code("ERROR404", ErrorClass.DATA, Action.BURY, None, "There is no such page."),
    Code("ERROR900", ErrorClass.BLOCKED, Action.PARK, None, "The site wants a person."),
)


def decided(error: BaseException, *, failures: int = 1, **retry: Any) -> Decision:
    return decide(
        failures=failures, error=error, retry=Retry(**retry), codes=CODES, rng=Random(7)
    )


lengths = st.floats(min_value=0, max_value=1e9)
policies = st.builds(
    lambda base, more, factor, jitter: Retry(
        base=base, cap=base + more, factor=factor, jitter=jitter
    ),
    lengths,
    lengths,
    st.floats(min_value=1, max_value=1e6),
    st.floats(min_value=0, max_value=1),
)


@given(policies, st.integers(min_value=1, max_value=10_000), st.integers())
@example(Retry(jitter=1.0), 10_000, 7)
@example(Retry(base=0.0, cap=0.0, factor=1e6), 10_000, 7)
def test_e15_backoff_stays_within_its_bounds(retry, failures, seed):
    wait = backoff(failures, retry, Random(seed))

    assert 0 <= wait <= retry.cap
    try:
        lowest = retry.base * retry.factor ** (failures - 1) * (1 - retry.jitter)
    except OverflowError:
        assume(retry.base > 0)
        lowest = math.inf if retry.jitter < 1 else 0.0
    assert wait >= min(lowest, retry.cap) or math.isnan(lowest)


@pytest.mark.parametrize(("failures", "wait"), [(1, 1), (2, 2), (3, 4), (9, 256), (10, 300)])
def test_e15_without_jitter_each_wait_is_the_double_of_the_last_up_to_the_cap(failures, wait):
    assert wait == backoff(failures, Retry(jitter=0), Random(7))


def test_e15_two_jobs_that_failed_together_do_not_come_back_together():
    rng = Random(7)

    assert 100 == len({backoff(1, Retry(), rng) for _ in range(100)})


def test_e23_the_same_seed_gives_the_same_decision():
    assert decided(Transient("no")) == decided(Transient("no"))


@pytest.mark.parametrize(
    "error",
    [
        Transient("worker answered 503"),
        Transient("a code nobody wrote down", code="ERROR999"),
        ValueError("an ordinary exception"),
        TimeoutError(),
        LeaseLost(42),
        Transient("exit code -11", code="child_died"),
    ],
    ids=code_of,
)
def test_what_may_pass_is_tried_again_until_the_attempts_are_spent(error):
    code = code_of(error)

    assert isinstance(decided(error, failures=1), Again)
    assert isinstance(decided(error, failures=2), Again)
    assert GiveUp(DeadReason.EXHAUSTED, code) == decided(error, failures=3)
    assert GiveUp(DeadReason.EXHAUSTED, code) == decided(error, failures=4)


def test_e9_a_job_of_one_attempt_is_never_tried_again():
    assert GiveUp(DeadReason.EXHAUSTED, "transient") == decided(Transient("no"), attempts=1)


def test_e9_the_smaller_of_the_two_budgets_holds():
    lost = Transient("the worker is gone", code="ERROR202")

    assert isinstance(decided(lost, failures=1, attempts=5), Again)
    assert GiveUp(DeadReason.EXHAUSTED, "ERROR202") == decided(lost, failures=2, attempts=5)
    assert GiveUp(DeadReason.EXHAUSTED, "ERROR202") == decided(lost, failures=1, attempts=1)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Permanent("no such page"), DeadReason.PERMANENT),
        (Permanent("a code nobody wrote down", code="ERROR999"), DeadReason.PERMANENT),
        (Permanent("this page at least", code="ERROR202"), DeadReason.PERMANENT),
        (Transient("the table knows better", code="ERROR404"), DeadReason.PERMANENT),
        (Transient("too late", code="deadline"), DeadReason.DEADLINE),
        (Transient("third runner", code="poison"), DeadReason.POISON),
        (Transient("twenty times", code="released_too_often"), DeadReason.EXHAUSTED),
        (BadInput("a lambda cannot travel"), DeadReason.PERMANENT),
        (Undecodable("expected text"), DeadReason.PERMANENT),
    ],
    ids=str,
)
def test_what_no_try_can_mend_is_buried_at_once(error, reason):
    assert GiveUp(reason, code_of(error)) == decided(error, failures=1, attempts=100)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("config", ParkReason.CONFIG),
        ("budget", ParkReason.BUDGET),
        ("unknown_remote", ParkReason.UNKNOWN_REMOTE),
        ("ERROR303", ParkReason.CONFIG),
        ("ERROR900", ParkReason.OPERATOR),
    ],
)
@pytest.mark.parametrize("kind", [Transient, Permanent])
def test_what_a_person_must_mend_is_held_however_it_was_raised(kind, code, reason):
    assert Hold(reason, code) == decided(kind("look", code=code), failures=3)


def test_a_result_that_cannot_be_stored_is_held_at_the_first_failure():
    decision = decided(Unstorable(b"", "no form"), failures=1, attempts=100)

    assert Hold(ParkReason.UNSTORABLE, "unstorable_result") == decision


def test_an_applications_code_comes_before_the_engines_of_that_name():
    mine = table(Code("timeout", ErrorClass.DATA, Action.BURY, None, "Slow means absent here."))

    decision = decide(
        failures=1, error=TimeoutError(), retry=Retry(), codes=mine, rng=Random(7)
    )

    assert GiveUp(DeadReason.PERMANENT, "timeout") == decision


def test_every_code_of_the_engine_leads_to_a_decision():
    for code in ENGINE_CODES.values():
        decision = decided(Transient("it happened", code=code.code))
        expected = {Action.RETRY: Again, Action.BURY: GiveUp, Action.PARK: Hold}
        assert isinstance(decision, expected[code.action])


def test_a_strangers_code_is_not_mistaken_for_one_of_ours():
    assert "exception" == code_of(SystemExit(3))


@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        (30, 30.0),
        ("120", 120.0),
        (0, 1.0),
        (-5, 1.0),
        (86_400, 900.0),
        (math.inf, 900.0),
        (math.nan, None),
        ("soon", None),
        ("", None),
        (None, None),
        (10**400, None),
    ],
)
def test_f14_a_wish_to_wait_is_heard_within_bounds(asked, granted):
    assert granted == retry_after(asked)


@pytest.mark.parametrize(("asked", "wait"), [(30, 30.0), (7_200, 900.0), (0, 1.0)])
def test_f14_no_attempt_comes_sooner_than_the_other_side_asked(asked, wait):
    throttled = Transient("worker answered 429", retry_after=asked)

    assert Again(wait, "transient") == decided(throttled)


def test_e15_no_attempt_comes_sooner_than_our_own_backoff():
    throttled = Transient("worker answered 429", retry_after=2)

    assert Again(60.0, "transient") == decided(throttled, base=60.0, jitter=0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempts": 0},
        {"attempts": 10**6},
        {"base": -1.0},
        {"base": math.nan},
        {"base": 400.0},
        {"cap": math.inf},
        {"factor": 0.5},
        {"jitter": 1.5},
        {"jitter": -0.1},
        {"jitter": math.nan},
    ],
    ids=str,
)
def test_row_35_a_policy_that_makes_no_sense_is_refused_by_name(wrong):
    with pytest.raises(BadInput, match="must be"):
        Retry(**wrong)


@pytest.mark.parametrize("attempts", [0, 1.5, "3", True, 1_001])
def test_attempts_are_a_whole_number(attempts):
    with pytest.raises(BadInput, match="attempts must be a whole number from 1 to 1000"):
        Retry(attempts=attempts)
