"""A runner's share of the rates that all runners keep to.

Tokens are reserved a handful at a time, so that a call costs no round trip; what is not used within a
second is forgotten, so that nobody saves up what the others were denied.
"""

import asyncio
from dataclasses import dataclass, field

from retoma.db import Database
from retoma.engine import store
from retoma.engine.errors import BadInput
from retoma.engine.outcome import Snooze, Unwound
from retoma.engine.ports import Clock
from retoma.words import say

FRESH = 1.0  # seconds a reserved token may be used
LONG = 5.0  # seconds: who must wait longer waits outside, holding no slot


@dataclass(slots=True)
class _Share:
    tokens: int = 0
    until: float = 0.0
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
        async with share.asking:
            while not self._spent(share, n):
                wait = await self._reserve(share, key, n)
                if wait > LONG:
                    raise Unwound(Snooze(wait))
                if wait:
                    await self._clock.sleep(wait)

    def _spent(self, share: _Share, n: int) -> bool:
        if self._clock.now() > share.until:
            share.tokens = 0
        if share.tokens < n:
            return False
        share.tokens -= n
        return True

    async def _reserve(self, share: _Share, key: str, n: int) -> float:
        wanted = n - share.tokens
        grant = await self._database.write(
            lambda tx: store.rate.reserve(tx, key, wanted), verb="reserve"
        )
        if grant.tokens:
            share.tokens += grant.tokens
            share.until = self._clock.now() + FRESH
        return 0.0 if share.tokens >= n else max(grant.wait, 0.001)
