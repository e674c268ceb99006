"""Jobs that live and do not move: once per silence, where they stand is put into their timeline.

Only the runner that holds a job has its task and its children, so it looks itself, once a second,
and only at kinds that say how long they may be silent.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from retoma.engine.ports import Clock
from retoma.engine.rules.job import Held
from retoma.engine.run.attempt import Attempt


@dataclass(slots=True)
class _Silence:
    moves: int
    since: float
    told: bool = False


class StallWatch:
    """Knows since when each running job has been silent."""

    def __init__(self, clock: Clock, *, stop: bool) -> None:
        self._clock = clock
        self._stop = stop
        self._silences: dict[Held, _Silence] = {}

    async def run_once(self, running: Iterable[Attempt]) -> int:
        """Tell of those that have just become too long; how many."""
        watched = [(attempt, attempt.stall) for attempt in running if attempt.stall is not None]
        now = self._clock.now()
        self._silences = {attempt.held: self._silence(attempt, now) for attempt, _ in watched}
        stalled = [
            (attempt, limit) for attempt, limit in watched if self._is_news(attempt, limit)
        ]
        for attempt, limit in stalled:
            await attempt.tell_stalled(limit, stop=self._stop)
        return len(stalled)

    def _silence(self, attempt: Attempt, now: float) -> _Silence:
        before = self._silences.get(attempt.held)
        if before is None or before.moves != attempt.moves:
            return _Silence(attempt.moves, now)
        return before

    def _is_news(self, attempt: Attempt, limit: float) -> bool:
        silence = self._silences[attempt.held]
        news = not silence.told and self._clock.now() - silence.since >= limit
        silence.told |= news
        return news
