"""Check the messages that carry hints: exactly two fields, `queue` and `job`."""

import json
from collections.abc import Collection
from enum import StrEnum
from typing import Any

from retoma.engine.store.hints import Hint

LONGEST = 2_000  # characters of a body; ours have about 150
QUEUE = 200  # characters of a queue's name
JSON = "application/json"
ENCODINGS = (None, "utf-8", "us-ascii")
RUN = "retoma.run"  # the task that processes a hint


class IgnoreReason(StrEnum):
    """Why a message is ignored."""

    ENCODING = "encoding"  # not JSON: pickled, compressed or another encoding
    SIZE = "size"
    FOREIGN = "foreign"  # not one of our tasks
    SHAPE = "shape"  # JSON with other fields
    UNKNOWN = "unknown"  # no such job in this queue


def check_message(
    task: Any,
    body: str | bytes,
    content_type: Any,
    encoding: Any,
    leader_tasks: frozenset[str],
    exported: Collection[str] = (),
) -> IgnoreReason | None:
    """Return why a message must be ignored, or None. Bodies that are not JSON are not decoded.

    `exported`: tasks that carry one id.
    """
    if content_type != JSON or encoding not in ENCODINGS:
        return IgnoreReason.ENCODING
    if len(body) > LONGEST:
        return IgnoreReason.SIZE
    if task != RUN and task not in leader_tasks and task not in exported:
        return IgnoreReason.FOREIGN
    try:
        args, kwargs, embedded = json.loads(body)
        linked = any(embedded.values())  # callbacks and chains would start other tasks
    except (ValueError, TypeError, AttributeError, RecursionError):
        return IgnoreReason.SHAPE
    if linked or not _fits(task, args, kwargs, exported):
        return IgnoreReason.SHAPE
    return None


def _fits(task: str, args: Any, kwargs: Any, exported: Collection[str]) -> bool:
    if task == RUN:
        return read_hint(args, kwargs) is not None
    if task in exported:
        return read_number(args, kwargs) is not None
    return not (args or kwargs)


def read_hint(args: Any, kwargs: Any) -> Hint | None:
    """Read the hint from a task's arguments; None if they are not a hint."""
    if args or not isinstance(kwargs, dict) or kwargs.keys() != {"queue", "job"}:
        return None
    queue, job = kwargs["queue"], kwargs["job"]
    if not isinstance(queue, str) or not 0 < len(queue) <= QUEUE:
        return None
    return Hint(queue, job) if _is_id(job) else None


def read_number(args: Any, kwargs: Any) -> int | None:
    """Read the single id from a task's arguments, under any name; None if they are anything else."""
    if not isinstance(args, list | tuple) or not isinstance(kwargs, dict):
        return None
    given = [*args, *kwargs.values()]
    return given[0] if len(given) == 1 and _is_id(given[0]) else None


def _is_id(value: Any) -> bool:
    return type(value) is int and 0 < value < 2**63  # True is an int, but not an id
