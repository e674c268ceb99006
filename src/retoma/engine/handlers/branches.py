"""What a story has going at once, and when all of it waits.

A branch that waits for remote work must not tear down the others. It waits inside until each of them
waits as well; then the story is left as a whole, and told again when the first of them is due.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Never, cast

from retoma.engine.rules.outcome import Park, Snooze
from retoma.engine.rules.states import ParkReason
from retoma.words import say

# Seconds between two looks. Between two steps a branch is not at work and yet does not wait: only
# where two looks find nobody at work does everybody wait.
BREATH = 0.025

Task = asyncio.Task[Any]
Wish = Snooze | Park | None  # None: it waits for another branch


class Branches:
    """The tasks of one story that are at work, and those that wait."""

    __slots__ = ("_at_work", "_leave", "_next", "_steps", "waiting")

    def __init__(
        self,
        steps: Callable[[], Iterable[Task | None]],
        leave: Callable[[Snooze | Park], None],
    ) -> None:
        self._steps = steps
        self._leave = leave
        self._at_work: Counter[Task | None] = Counter()
        self._next: asyncio.TimerHandle | None = None
        self.waiting: dict[Task, Wish] = {}

    @contextmanager
    def working(self) -> Iterator[None]:
        task = asyncio.current_task()
        self._at_work[task] += 1
        try:
            yield
        finally:
            self._at_work[task] -= 1

    async def wait(self, wish: Wish) -> Never:
        """Until the story is left."""
        task = cast("Task", asyncio.current_task())
        self.waiting[task] = wish
        self._look_again(quiet=False)
        try:
            await asyncio.Event().wait()
        finally:
            self.waiting.pop(task, None)
        raise asyncio.CancelledError

    def close(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def _look_again(self, *, quiet: bool) -> None:
        self.close()
        loop = asyncio.get_running_loop()
        self._next = loop.call_later(BREATH, self._look, quiet)

    def _look(self, was_quiet: bool) -> None:
        if not self.waiting:
            return
        quiet = {*(+self._at_work), *self._steps()} <= self.waiting.keys()
        if quiet and was_quiet:
            self._leave(first_due(self.waiting.values()))
        else:
            self._look_again(quiet=quiet)


def first_due(wishes: Iterable[Wish]) -> Snooze | Park:
    """Told again when the first is due; a person is waited for when nothing else is."""
    known = [wish for wish in wishes if wish is not None]
    snoozes = [wish for wish in known if isinstance(wish, Snooze)]
    if snoozes:
        return min(snoozes, key=lambda snooze: snooze.after)
    lost = say(
        "its remote work is not asked after by the story any more; somebody must say what it does"
    )
    return next(
        (wish for wish in known if isinstance(wish, Park)),
        Park(lost, ParkReason.UNKNOWN_REMOTE),
    )
