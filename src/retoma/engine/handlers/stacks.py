"""Where a task stands, for whoever must find out later why it did not go on."""

import asyncio
import traceback
from collections.abc import Iterable
from types import FrameType
from typing import Any

AT_MOST = 5  # tasks of one job that are told of
LEAF = 200  # characters of what the last frame waits for


def of_tasks(tasks: Iterable["asyncio.Task[Any]"]) -> str:
    """Of each, from its first line to what it waits for."""
    return "\n".join(of_task(task) for task in list(tasks)[:AT_MOST])


def of_task(task: "asyncio.Task[Any]") -> str:
    # task.get_stack() tells of a waiting coroutine only its outermost frame.
    frames, waits_for = _chain(task.get_coro())
    lines = traceback.StackSummary.extract((frame, frame.f_lineno) for frame in frames)
    waiting = frames and waits_for is not None
    last = f"waits for {repr(waits_for)[:LEAF]}\n" if waiting else ""
    return "".join(lines.format()) + last


def _chain(awaited: Any) -> tuple[list[FrameType], Any]:
    """The frames of all that wait for one another, outermost first, and what the last waits for."""
    frames: list[FrameType] = []
    while True:
        for kind in ("cr", "gi", "ag"):
            frame = getattr(awaited, f"{kind}_frame", None)
            if frame is not None:
                break
        else:
            return frames, awaited
        frames.append(frame)
        awaited = getattr(awaited, "gi_yieldfrom" if kind == "gi" else f"{kind}_await", None)
