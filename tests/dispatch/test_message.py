"""What a message must be before anybody believes it. Row 39 of the bad inputs."""

import json
import pickle
from typing import Any

import pytest

from retoma.dispatch.message import LONGEST, RUN, IgnoreReason, check_message, read_hint
from retoma.engine.store.hints import Hint

DUTIES = frozenset({"retoma.fold"})
EMBEDDED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


def body(args: Any = (), kwargs: Any = None, embedded: Any = EMBEDDED) -> str:
    return json.dumps(
        [args, {"queue": "work", "job": 7} if kwargs is None else kwargs, embedded]
    )


def problem(text: str | bytes, *, task: Any = RUN, **how: Any) -> IgnoreReason | None:
    told = {"content_type": "application/json", "encoding": "utf-8", **how}
    return check_message(task, text, leader_tasks=DUTIES, **told)


def test_a_hint_and_a_duty_are_well():
    assert problem(body()) is None
    assert problem(body().encode()) is None
    assert problem(body(kwargs={}), task="retoma.fold") is None


@pytest.mark.parametrize(
    "how",
    [
        {"content_type": "application/x-python-serialize", "encoding": "binary"},
        {"content_type": "application/x-yaml"},
        {"content_type": None},
        {"content_type": "application/json", "encoding": "utf-16"},
    ],
)
def test_only_what_is_json_is_read(how):
    assert IgnoreReason.ENCODING == problem(pickle.dumps(body()), **how)


def test_a_pickle_that_calls_itself_json_is_never_unpacked():
    assert IgnoreReason.SHAPE == problem(pickle.dumps({"job": 7}))


def test_a_huge_one_is_not_even_parsed():
    assert IgnoreReason.SIZE == problem("[" * (LONGEST + 1))


@pytest.mark.parametrize("task", ["other.task", None, 7, "", "retoma", ["retoma.run"]])
def test_what_is_of_no_task_of_ours_is_foreign(task):
    assert IgnoreReason.FOREIGN == problem(
        body(), task=task if not isinstance(task, list) else str(task)
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "7",
        '{"queue": "work", "job": 7}',
        "[" * 500,
        body(args=[1]),
        body(kwargs={"queue": "work"}),
        body(kwargs={"queue": "work", "job": 7, "payload": {}}),
        body(kwargs={"queue": "work", "job": "7"}),
        body(kwargs={"queue": "work", "job": True}),
        body(kwargs={"queue": "work", "job": 7.0}),
        body(kwargs={"queue": "work", "job": 0}),
        body(kwargs={"queue": "work", "job": -1}),
        body(kwargs={"queue": "work", "job": 2**63}),
        body(kwargs={"queue": "", "job": 7}),
        body(kwargs={"queue": "w" * 201, "job": 7}),
        body(kwargs={"queue": None, "job": 7}),
        body(kwargs=[["queue", "work"]]),
        body(embedded={**EMBEDDED, "callbacks": [{"task": "evil"}]}),
        body(embedded=None),
    ],
)
def test_two_fields_and_nothing_else(text):
    assert IgnoreReason.SHAPE == problem(text)


def test_a_duty_takes_nothing():
    assert IgnoreReason.SHAPE == problem(body(), task="retoma.fold")


def test_a_hint_is_read_from_its_fields():
    assert Hint("work", 7) == read_hint((), {"queue": "work", "job": 7})
    assert read_hint((7,), {}) is None
    assert read_hint((), None) is None


@pytest.mark.parametrize(
    ("args", "kwargs", "bad"),
    [
        ([7], {}, None),
        ([], {"quote_request_id": 7}, None),
        ([], {}, IgnoreReason.SHAPE),
        ([7, 8], {}, IgnoreReason.SHAPE),
        ([7], {"other": 8}, IgnoreReason.SHAPE),
        (["7"], {}, IgnoreReason.SHAPE),
        ([True], {}, IgnoreReason.SHAPE),
        ([0], {}, IgnoreReason.SHAPE),
        ([2**63], {}, IgnoreReason.SHAPE),
        ({"a": 7}, {}, IgnoreReason.SHAPE),
    ],
)
def test_a_task_that_is_exported_carries_one_number(args, kwargs, bad):
    told = {"task": "process_quote_request", "exported": {"process_quote_request"}}
    assert bad is problem(body(args, kwargs), **told)
    assert IgnoreReason.FOREIGN is problem(body(args, kwargs), task="process_quote_request")
