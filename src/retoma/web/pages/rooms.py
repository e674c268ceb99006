"""What each application is doing, for the board: one card each, and the way in."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from retoma.engine.rules.states import State
from retoma.manifest import Application
from retoma.services.jobs import Minute

SPAN: Final = 60  # minutes that its line shows
TALL: Final = 100.0  # how high the line may go


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """One application."""

    name: str
    title: str
    address: str
    counts: Mapping[State, int]
    done: int  # in the last hour
    line: str  # how many were done in each minute of it, as the points of a polyline

    @property
    def begun(self) -> bool:
        """Whether it ever had anything to do."""
        return any(self.counts.values())


def rooms_of(
    applications: Iterable[Application],
    counts: Mapping[str, Mapping[State, int]],
    moved: Sequence[Minute],
    now: datetime,
) -> list[Room]:
    """Those that have pages, in the order of the menu."""
    return [
        _room(each, {kind: n for kind, n in counts.items() if owns(each, kind)}, moved, now)
        for each in applications
        if each.menu
    ]


def owns(application: Application, kind: str) -> bool:
    """Whether it is a kind of this application; what it runs by the clock counts as its upkeep."""
    own = {each.name for each in application.own_kinds()}
    upkeep = {name for name, _ in application.schedules}
    return kind not in upkeep and (kind in own or kind.startswith(f"{application.name}."))


def _room(
    application: Application,
    counts: Mapping[str, Mapping[State, int]],
    moved: Sequence[Minute],
    now: datetime,
) -> Room:
    done = [each for each in moved if each.state is State.DONE and owns(application, each.kind)]
    return Room(
        name=application.name,
        title=application.title or application.name,
        address=application.menu[0][1],
        counts={
            state: sum(states.get(state, 0) for states in counts.values()) for state in State
        },
        done=sum(each.jobs for each in done),
        line=_line(done, now),
    )


def _line(done: Iterable[Minute], now: datetime) -> str:
    """From left to right, the busiest minute at the top; the last minute is not over, and left out."""
    by_minute: Counter[int] = Counter()
    for each in done:
        by_minute[int(each.at.timestamp()) // 60] += each.jobs
    last = int(now.timestamp()) // 60
    heights = [by_minute[minute] for minute in range(last - SPAN, last)]
    most = max(*heights, 1)
    return " ".join(f"{x},{TALL - n * TALL / most:.0f}" for x, n in enumerate(heights))
