"""The task that tells a story, and those the story has going beside it."""

import asyncio
from contextlib import suppress
from typing import Any

from retoma.engine.handlers import stacks

Task = asyncio.Task[Any]


class Tasks:
    """Of one attempt; none of them should be at work when that is settled."""

    __slots__ = ("beside", "story")

    def __init__(self, story: Task | None) -> None:
        self.story = story
        self.beside: set[Task] = set()

    def join(self) -> Task | None:
        """Whoever asks for something is waited for; returns the task that asked."""
        task = asyncio.current_task()
        if task is not None and task is not self.story and task not in self.beside:
            self.beside.add(task)
            task.add_done_callback(self.beside.discard)
        return task

    def story_is_alone(self) -> bool:
        return asyncio.current_task() is self.story and not self.beside

    async def stop(self, patience: float) -> set[Task]:
        """Those beside the story; returns which of them do not let go."""
        loop = asyncio.get_running_loop()
        until = loop.time() + patience
        waiting = set(self.beside)
        for task in waiting:
            task.cancel()
            task.add_done_callback(_look_at)
        while waiting and (left := until - loop.time()) > 0:
            # Whoever stops us now is too late: the story has ended, and that must be settled.
            with suppress(asyncio.CancelledError):
                _, waiting = await asyncio.wait(waiting, timeout=left)
        return waiting

    def stack(self) -> str:
        """Where each of them stands."""
        story = [] if self.story is None else [self.story]
        return stacks.of_tasks([*story, *self.beside])


def _look_at(task: Task) -> None:
    """Its error is nobody's any more, and need not be told as one that was forgotten."""
    if not task.cancelled():
        task.exception()
