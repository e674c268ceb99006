"""Errors form one tree, their codes one table, and their words are for people."""

import pickle
import re

import pytest

from retoma.engine.rules import errors
from retoma.engine.rules.errors import (
    ENGINE_CODES,
    Action,
    BadInput,
    Code,
    ErrorClass,
    LeaseLost,
    Permanent,
    Refused,
    RetomaError,
    Throttled,
    Transient,
    Unsure,
)

OUGHT_TO_RETRY = {
    *("exception", "transient", "timeout", "stalled", "child_died", "out_of_memory"),
    *("remote_failed", "remote_gone", "remote_stopped", "remote_timeout", "remote_stalled"),
    *("throttled", "no_answer", "bad_answer", "unsure"),
    "lease_lost",
}
OUGHT_TO_PARK = {"config", "budget", "unknown_remote", "unstorable_result"}


def kinds_of_error() -> list[type[RetomaError]]:
    found = [each for each in vars(errors).values() if isinstance(each, type)]
    return [each for each in found if issubclass(each, RetomaError)]


def test_the_drawn_tree_names_every_error():
    drawn = re.findall(r"── (\w+)", errors.__doc__ or "")

    assert sorted(drawn) == sorted(each.__name__ for each in kinds_of_error()[1:])


@pytest.mark.parametrize(
    "name", ["BadInput", "UnknownKind", "IdempotencyMismatch", "NotFound", "IllegalMove"]
)
def test_bad_input_is_refused_by_a_kind_of_refused(name):
    assert issubclass(getattr(errors, name), Refused)


def test_a_commit_whose_reply_was_lost_is_not_a_refusal():
    """A refusal promises that nothing was changed; here nobody knows (H-X6)."""
    assert not issubclass(Unsure, Refused)


def test_a_lost_lease_names_its_job():
    error = LeaseLost(42)

    assert 42 == error.job
    assert "job 42" in str(error)


@pytest.mark.parametrize(
    "error",
    [
        Transient("worker answered 503", code="ERROR502", retry_after=30.0),
        Permanent("no such page", code="ERROR404"),
        LeaseLost(42),
        Throttled("429", retry_after=30.0),
        Unsure("the reply never came", code="too_large"),
        BadInput("no"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_travel_between_processes(error):
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes

    assert (type(error), str(error), vars(error)) == (type(copy), str(copy), vars(copy))


def test_a_failure_carries_a_code_also_when_none_is_given():
    assert "transient" == Transient("not now").code
    assert "throttled" == Throttled("not so often").code
    assert "permanent" == Permanent("never").code
    assert "unsure" == Unsure("the reply never came").code
    assert Transient("not now").retry_after is None


def test_every_code_stands_under_its_own_name_and_says_what_it_means():
    for name, code in ENGINE_CODES.items():
        assert name == code.code
        assert code.meaning.endswith(".")


def test_every_code_has_the_action_it_ought_to_have():
    by_action = {
        action: {name for name, code in ENGINE_CODES.items() if code.action is action}
        for action in Action
    }

    assert by_action[Action.RETRY] == OUGHT_TO_RETRY
    assert by_action[Action.PARK] == OUGHT_TO_PARK


def test_e13_a_canceled_job_is_never_retried():
    assert ENGINE_CODES["canceled"].action is Action.BURY


def test_a_table_refuses_a_name_given_twice():
    code = Code("ERROR202", ErrorClass.TRANSIENT, Action.RETRY, 2, "The worker was lost.")

    with pytest.raises(BadInput, match="ERROR202"):
        errors.table(code, code)


def test_a_budget_of_nothing_is_refused():
    with pytest.raises(BadInput, match="at least 1"):
        Code("ERROR202", ErrorClass.TRANSIENT, Action.RETRY, 0, "The worker was lost.")
