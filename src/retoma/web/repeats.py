"""What a page has answered under one Idempotency-Key a moment ago, in the memory of this process alone.

The second press of a button may be read when the first one is answered already: it has to be told the same.
That it is done once is kept by the database, for all processes (`replay`); what was said is kept here, since
it may be a secret that is shown once.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

from retoma.engine.ports import Clock
from retoma.engine.store import Asked

REMEMBERED: Final = 30.0  # seconds after the last press: longer than an answer is on its way
MOST: Final = 256  # keys that are remembered after their answer


@dataclass(slots=True)
class Repeat:
    """The requests under one key, and the answer to the first of them."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0  # requests that are here now
    until: float = 0.0
    asked: Asked | None = None
    given: dict[str, Any] | None = None


class Repeats:
    """One for each site. Forgets a key some time after its last request."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[
            tuple[str, str], Repeat
        ] = {}  # the one that was asked for last is last

    def enter(self, person: str, key: str) -> Repeat:
        """Find what is known of a key; `leave` follows."""
        self._forget_old()
        repeat = self._known.pop((person, key), None) or Repeat()
        self._known[person, key] = repeat
        repeat.waiting += 1
        repeat.until = self._clock.now() + REMEMBERED
        return repeat

    def leave(self, repeat: Repeat) -> None:
        repeat.waiting -= 1
        repeat.until = self._clock.now() + REMEMBERED

    def _forget_old(self) -> None:
        now, spare = self._clock.now(), len(self._known) - MOST
        for place, (name, each) in enumerate([*self._known.items()]):
            if not each.waiting and (each.until <= now or place < spare):
                del self._known[name]
