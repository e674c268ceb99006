"""A runner's share of the rates that all runners keep to.

Tokens are reserved a handful at a time, so that a call costs no round trip: for all who wait here, and,
where there are plenty, for those who come next. What is not used in a moment is forgotten, and the
bucket is smaller by as much: nobody saves up what the others were denied, or more than the burst.
"""

import asyncio
from dataclasses import dataclass, field

from retoma.db import Database
from retoma.engine import store
from retoma.engine.duration import LONGEST
from retoma.engine.errors import BadInput
from retoma.engine.outcome import Snooze, Unwound
from retoma.engine.ports import Clock
from retoma.words import say

LONG = 5.0  # seconds: who must wait longer waits outside, holding no slot


@dataclass(slots=True)
class _Share:
    tokens: int = 0
    until: float = 0.0  # when what is left of them is forgotten
    wanted: int = 0  # by all who wait
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


class Rates:
    """One per boot."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._shares: dict[str, _Share] = {}

    async def spend(self, key: str, n: int) -> None:
        """Return when `n` calls may be made."""
        if type(n) is not int or n < 1:
            raise BadInput(
                say("{key}: a call costs at least one token, not {n!r}", key=key, n=n)
            )
        share = self._shares.setdefault(key, _Share())
        share.wanted += n
        try:
            async with share.asking:
                await self._gather(share, key, n)
        finally:
            share.wanted -= n
            if not share.wanted and self._clock.now() > share.until:
                self._shares.pop(key, None)  # nothing is left of it, or there is no such rate

    async def _gather(self, share: _Share, key: str, n: int) -> None:
        missing = n - self._take(share, n)
        while missing:
            wait = await self._reserve(share, key, missing, share.wanted - n)
            missing -= self._take(share, missing)
            if missing and wait > LONG:
                raise Unwound(Snooze(min(wait, LONGEST)))
            if missing:
                await self._clock.sleep(wait)

    def _take(self, share: _Share, n: int) -> int:
        if self._clock.now() > share.until:
            share.tokens = 0
        taken = min(n, share.tokens)
        share.tokens -= taken
        return taken

    async def _reserve(self, share: _Share, key: str, wanted: int, others: int) -> float:
        grant = await self._database.write(
            lambda tx: store.rate.reserve(tx, key, wanted, others), verb="reserve"
        )
        share.tokens = grant.tokens
        share.until = self._clock.now() + grant.fresh
        return max(grant.wait, 0.001)
