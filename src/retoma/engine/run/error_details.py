"""Describe errors of attempts for the timeline. Pure."""

import traceback

from retoma.db import Away, Busy, Full, Interrupted
from retoma.engine.isolation.isolate import ChildDied
from retoma.secret import LONGEST, redact_text
from retoma.words import say

MESSAGE = 2_000  # characters of an error that go into the timeline
STACK = 8_000


def error_details(error: BaseException) -> dict[str, object]:
    """What was raised, its message, its stack."""
    stack = "".join(traceback.format_exception(error))
    details: dict[str, object] = {
        "type": type(error).__name__,
        "message": printable(_message_of(error), MESSAGE),
        "stack": printable(redact_text(stack[-LONGEST:])[-STACK:], STACK),
    }
    return {**error.details, **details} if isinstance(error, ChildDied) else details


def short(details: dict[str, object]) -> dict[str, object]:
    """As much of it as a log line has."""
    return {"error": details.get("type"), "message": details["message"]}


def printable(text: str, most: int) -> str:
    """What every database can store and every person may read, whatever the error had in it."""
    safe = redact_text(text[:LONGEST])[:most]
    return safe.encode("utf-8", "replace").decode().replace("\0", "�")


def leaves(error: BaseException) -> list[BaseException]:
    """The errors of a group, at any depth; else the error alone."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in leaves(each)]
    return [error]


def is_trouble(error: BaseException) -> bool:
    """Whether our own database could not answer: that is no failure of the job."""
    return all(
        isinstance(leaf, Away | Busy | Full)
        and not (isinstance(leaf, Interrupted) and leaf.callers)
        for leaf in leaves(error)
    )


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 — a handler's own exception, which cannot even speak
        return say("its message could not be read")
