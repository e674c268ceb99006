"""A runner's share of the rates that all runners keep to.

Tokens are reserved a handful at a time, so that a call costs no round trip: for all who wait here, and,
where there are plenty, for those who come next. What is not used in a moment is forgotten, and the
bucket is smaller by as much: nobody saves up what the others were denied, or more than the burst.

What came of the calls under an adaptive rate goes along with the next reservation; a refusal is reported
at once, all refusals of a moment together. A runner that dies leaves nothing behind: tokens are spent
when they are reserved, and the bucket fills by itself.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from retoma.db import Database, DatabaseError
from retoma.engine import store
from retoma.engine.log import get_logger
from retoma.engine.ports import Clock
from retoma.engine.rules.adaptive_rate import CROWD, Observed
from retoma.engine.rules.duration import LONGEST
from retoma.engine.rules.errors import BadInput, Throttled, Transient
from retoma.engine.rules.outcome import Snooze, Unwound
from retoma.engine.rules.retry import retry_after
from retoma.engine.store.rate import Refusals
from retoma.words import say

LONG = 5.0  # seconds: who must wait longer waits outside, holding no slot

log = get_logger("retoma.rates")


@dataclass(slots=True)
class _Share:
    tokens: int = 0
    until: float = 0.0  # when what is left of them is forgotten
    wanted: int = 0  # by all who wait
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    # Of an adaptive rate.
    cuts: int = 0  # which of its rates permits these tokens
    calls: int = 0  # under way
    passed: int = 0  # not reported yet; neither are the others
    timed: int = 0
    seconds: float = 0.0
    refused: Refusals | None = None
    reporting: asyncio.Lock = field(default_factory=asyncio.Lock)

    def take_observed(self) -> Observed:
        """What is to be reported; durations once they are enough to mean something."""
        timed, seconds = (self.timed, self.seconds) if self.timed >= CROWD else (0, 0.0)
        seen = Observed(passed=self.passed, timed=timed, seconds=seconds)
        self.passed = 0
        self.timed -= timed
        self.seconds -= seconds
        return seen

    def put_back(self, seen: Observed) -> None:
        self.passed += seen.passed
        self.timed += seen.timed
        self.seconds += seen.seconds


class Rates:
    """One per runner instance."""

    def __init__(self, database: Database, clock: Clock, actor: str = "runner") -> None:
        self._database = database
        self.clock = clock
        self._actor = actor
        self._shares: dict[str, _Share] = {}

    def permit(
        self,
        key: str,
        n: int,
        *,
        adaptive: bool = False,
        working: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> "Permit":
        return Permit(self, key, n, adaptive, working)

    async def spend(self, key: str, n: int, *, adaptive: bool = False) -> int:
        """Return when `n` calls may be made: which of the rates of an adaptive one permits them."""
        if type(n) is not int or n < 1:
            raise BadInput(
                say("{key}: a call costs at least one token, not {n!r}", key=key, n=n)
            )
        share = self._shares.setdefault(key, _Share())
        share.wanted += n
        try:
            async with share.asking:
                await self._gather(share, key, n, adaptive)
        finally:
            share.wanted -= n
            self._drop_idle(key, share)
        return share.cuts

    def begin(self, key: str) -> None:
        """A call under an adaptive rate begins."""
        self._shares.setdefault(key, _Share()).calls += 1

    async def end(
        self, key: str, n: int, cuts: int, seconds: float, error: BaseException | None
    ) -> None:
        """What came of it."""
        share = self._shares[key]
        try:
            refused, asked = _refusal(error)
            if refused:
                _mark_slowed(error)
                share.refused = _together(share.refused, Refusals(n, cuts, asked))
                await self._report(share, key)
            elif error is None:
                share.passed += n
            if error is None or isinstance(error, TimeoutError):
                share.timed += 1
                share.seconds += seconds
        finally:
            share.calls -= 1
            self._drop_idle(key, share)

    def _drop_idle(self, key: str, share: _Share) -> None:
        if not share.wanted and not share.calls and self.clock.now() > share.until:
            self._shares.pop(key, None)  # nothing is left of it, or there is no such rate

    async def _report(self, share: _Share, key: str) -> None:
        async with share.reporting:
            refusals, share.refused = share.refused, None
            if refusals is None:
                return  # it went along with another one's report
            seen, written = share.take_observed(), False
            try:
                grant = await self._database.write(
                    lambda tx: store.rate.report(tx, key, seen, refusals, actor=self._actor),
                    verb="report_rate",
                )
                written = True
            except DatabaseError as error:
                # The call has failed already, and its own error is what its job must hear of.
                log.warning("rate.report_failed", rate=key, error=str(error))
                return
            finally:
                if not written:
                    share.put_back(seen)
                    share.refused = _together(share.refused, refusals)
            share.tokens, share.cuts = 0, grant.cuts

    async def _gather(self, share: _Share, key: str, n: int, adaptive: bool) -> None:
        missing = n - self._take(share, n)
        while missing:
            wait = await self._reserve(share, key, missing, share.wanted - n, adaptive)
            missing -= self._take(share, missing)
            if missing and wait > LONG:
                raise Unwound(Snooze(min(wait, LONGEST)))
            if missing:
                await self.clock.sleep(wait)

    def _take(self, share: _Share, n: int) -> int:
        if self.clock.now() > share.until:
            share.tokens = 0
        taken = min(n, share.tokens)
        share.tokens -= taken
        return taken

    async def _reserve(
        self, share: _Share, key: str, wanted: int, others: int, adaptive: bool
    ) -> float:
        seen, written = share.take_observed() if adaptive else None, False
        try:
            grant = await self._database.write(
                lambda tx: store.rate.reserve(tx, key, wanted, others, seen, actor=self._actor),
                verb="reserve",
            )
            written = True
        finally:
            if seen is not None and not written:
                share.put_back(seen)
        share.tokens = grant.tokens
        share.cuts = grant.cuts
        share.until = self.clock.now() + grant.fresh
        return max(grant.wait, 0.001)


class Permit:
    """`await` it before a call, or enter it around the call: an adaptive rate learns what came of it."""

    def __init__(
        self,
        rates: Rates,
        key: str,
        n: int,
        adaptive: bool,
        working: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._rates = rates
        self._key = key
        self._n = n
        self._adaptive = adaptive
        self._working = working
        self._cuts = 0
        self._began = 0.0

    def __await__(self) -> Generator[Any, None, None]:
        return self._spend().__await__()

    async def __aenter__(self) -> None:
        await self._spend()
        if self._adaptive:
            self._rates.begin(self._key)
            self._began = self._rates.clock.now()

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self._adaptive:
            seconds = self._rates.clock.now() - self._began
            await self._rates.end(self._key, self._n, self._cuts, seconds, error)

    async def _spend(self) -> None:
        with self._working():
            self._cuts = await self._rates.spend(self._key, self._n, adaptive=self._adaptive)


def _refusal(error: BaseException | None) -> tuple[bool, float | None]:
    """Whether the service said that we call too often, and how long it asks us to wait."""
    if isinstance(error, Unwound):
        error = (
            error.__cause__
        )  # a breaker inside: the job leaves because of what the service said
    if not isinstance(error, Transient):
        return False, None
    asked = retry_after(error.retry_after)
    return isinstance(error, Throttled) or asked is not None, asked


def _mark_slowed(error: BaseException | None) -> None:
    """A breaker around it counts no outage."""
    if isinstance(error, Transient):
        error.slowed = True


def _together(before: Refusals | None, more: Refusals) -> Refusals:
    if before is None:
        return more
    waits = [each for each in (before.asked, more.asked) if each is not None]
    return Refusals(
        before.n + more.n, max(before.cuts, more.cuts), max(waits) if waits else None
    )
