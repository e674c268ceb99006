"""Who held which pool item from when until when, by the timelines of jobs: never two at once. Pure."""

from array import array
from collections.abc import Iterator
from datetime import datetime

from retoma.db.rows import microseconds
from retoma.engine.checker.rows import Case, Event
from retoma.engine.rules.events import LEADS_TO, EventType
from retoma.engine.rules.job import Scope
from retoma.engine.rules.states import ENDED
from retoma.words import Said, say

Item = tuple[str, str]  # the pool and the name of one
FOR_EVER = 2**63 - 1
WORDS = 3  # numbers of one hold: since, until, job


class Holds:
    """Every hold that was told of, 24 bytes each: of a million jobs it is a few megabytes."""

    def __init__(self) -> None:
        self._by_item: dict[Item, array[int]] = {}

    def add(self, case: Case) -> None:
        """Take in what one job held."""
        held: dict[Item, tuple[int, str]] = {}
        for event in case.events:
            if event.type is EventType.HELD:
                item = _item(event)
                since = held[item][0] if item in held else microseconds(event.at)
                held[item] = since, event.details["scope"]
            elif event.type is EventType.FREED:
                self._end(held, [_item(event)], event.at, case)
            elif event.ends_claim:
                over = [item for item, (_, scope) in held.items() if scope == Scope.ATTEMPT]
                self._end(held, over, event.at, case)
            if _ends_job(event):
                over = [item for item, (_, scope) in held.items() if scope == Scope.JOB]
                self._end(held, over, event.at, case)
        for item in [*held]:
            self._put(item, held[item][0], FOR_EVER, case.job.id)

    def overlaps(self) -> Iterator[tuple[Item, Said]]:
        """Items that two jobs held at the same time."""
        for item, numbers in self._by_item.items():
            holds = sorted(zip(*(numbers[n::WORDS] for n in range(WORDS)), strict=True))
            until, holder = 0, 0
            for since, ends, job in holds:
                if since < until and job != holder:
                    yield (
                        item,
                        say("jobs {one} and {other} held it at once", one=holder, other=job),
                    )
                if ends >= until:
                    until, holder = ends, job

    def _end(
        self, held: dict[Item, tuple[int, str]], items: list[Item], at: datetime, case: Case
    ) -> None:
        for item in items:
            if item in held:
                since, _ = held.pop(item)
                self._put(item, since, microseconds(at), case.job.id)

    def _put(self, item: Item, since: int, until: int, job: int) -> None:
        self._by_item.setdefault(item, array("q")).extend((since, until, job))


def _item(event: Event) -> Item:
    return event.details["pool"], event.details["item"]


def _ends_job(event: Event) -> bool:
    return LEADS_TO[event.type] in ENDED
