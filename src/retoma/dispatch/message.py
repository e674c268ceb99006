"""A hint as a message: two fields and nothing else, checked before anybody believes it."""

import json
from collections.abc import Collection
from enum import StrEnum
from typing import Any

from retoma.engine.store.hints import Hint

LONGEST = 2_000  # characters of a body; ours have about 150
QUEUE = 200  # characters of a queue's name
JSON = "application/json"
ENCODINGS = (None, "utf-8", "us-ascii")
RUN = "retoma.run"  # the task that heeds a hint


class Bad(StrEnum):
    """Why a message is ignored."""

    ENCODING = "encoding"  # not JSON: pickled, packed, in a tongue of its own
    SIZE = "size"
    FOREIGN = "foreign"  # of no task of ours
    SHAPE = "shape"  # JSON, and not our fields
    UNKNOWN = "unknown"  # there is no such job in that queue


def problem_of(
    task: Any,
    body: str | bytes,
    content_type: Any,
    encoding: Any,
    duties: frozenset[str],
    exported: Collection[str] = (),
) -> Bad | None:
    """What is wrong with a message as it came; None: nothing. Only what is JSON is read at all.

    `exported`: tasks that carry one number.
    """
    if content_type != JSON or encoding not in ENCODINGS:
        return Bad.ENCODING
    if len(body) > LONGEST:
        return Bad.SIZE
    if task != RUN and task not in duties and task not in exported:
        return Bad.FOREIGN
    try:
        args, kwargs, embedded = json.loads(body)
        linked = any(embedded.values())  # callbacks and chains: other tasks in tow
    except (ValueError, TypeError, AttributeError, RecursionError):
        return Bad.SHAPE
    if linked or not _fits(task, args, kwargs, exported):
        return Bad.SHAPE
    return None


def _fits(task: str, args: Any, kwargs: Any, exported: Collection[str]) -> bool:
    if task == RUN:
        return read_hint(args, kwargs) is not None
    if task in exported:
        return read_number(args, kwargs) is not None
    return not (args or kwargs)


def read_hint(args: Any, kwargs: Any) -> Hint | None:
    """The hint in the arguments of a task; None where they are no hint."""
    if args or not isinstance(kwargs, dict) or kwargs.keys() != {"queue", "job"}:
        return None
    queue, job = kwargs["queue"], kwargs["job"]
    if not isinstance(queue, str) or not 0 < len(queue) <= QUEUE:
        return None
    return Hint(queue, job) if _is_id(job) else None


def read_number(args: Any, kwargs: Any) -> int | None:
    """The one number in the arguments of a task, by whatever name; None where they are anything else."""
    if not isinstance(args, list | tuple) or not isinstance(kwargs, dict):
        return None
    given = [*args, *kwargs.values()]
    return given[0] if len(given) == 1 and _is_id(given[0]) else None


def _is_id(value: Any) -> bool:
    return type(value) is int and 0 < value < 2**63  # True is an int, and no id
