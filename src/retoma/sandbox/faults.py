"""Faults of a sandbox site: on demand, at random by seed, and for a proxy that sent too many requests."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import Any, Final

from retoma.engine.rules.errors import BadInput
from retoma.words import say

MOST: Final = 600.0  # seconds a fault may take
BLOCKED: Final = 403
# Random faults, equally likely.
BY_CHANCE: Final[Sequence[tuple[str, dict[str, Any]]]] = (
    ("slow", {"seconds": 0.2}),
    ("status", {"status": 429, "retry_after": 1}),
    ("status", {"status": 500}),
    ("cut", {}),
)


class FaultKind(StrEnum):
    """What goes wrong with a request."""

    SLOW = "slow"  # answered, but late
    STATUS = "status"  # answered with this status instead
    HOLD = "hold"  # answered once the faults are removed
    HANG = "hang"  # never answered
    CUT = "cut"  # the connection breaks in the middle of the page


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault: what goes wrong, for which requests, and how often."""

    trouble: FaultKind
    status: int = 500
    seconds: float = 1.0
    retry_after: int | None = None
    path: str = ""  # only below this path
    about: str = ""  # only requests that contain this text
    proxy: str | None = None  # only through this proxy
    after: int = 0  # matching requests that succeed first
    times: int | None = 1  # None: until it is removed

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Fault":
        """Parse a fault; BadInput if a field is unknown or out of range."""
        known = set(cls.__dataclass_fields__)
        try:
            made = cls(**{**given, "trouble": FaultKind(given.get("trouble", ""))})
            valid = (
                0 <= made.seconds <= MOST
                and made.after >= 0
                and (made.times is None or made.times > 0)
                and 400 <= made.status < 600
            )
        except (TypeError, ValueError):
            valid = False
        if not valid:
            raise BadInput(
                say(
                    "a fault takes only {known}, each within its range",
                    known=", ".join(sorted(known)),
                )
            )
        return made

    def matches(self, proxy: str | None, path: str, text: str) -> bool:
        return (
            path.startswith(self.path)
            and self.proxy in (None, proxy)
            and self.about.casefold() in text.casefold()
        )


class Faults:
    """Decides for each request, in order, which fault it gets."""

    def __init__(
        self,
        *,
        seed: int = 1,
        rate: float = 0.0,
        block_after: int | None = None,
        by_chance: Sequence[tuple[str, dict[str, Any]]] = BY_CHANCE,
    ) -> None:
        """`rate`: the share of requests that get a random fault of `by_chance`.
        `block_after`: after this many requests a proxy is blocked."""
        self._seed = seed
        self._rate = rate
        self._block_after = block_after
        self._chances = by_chance
        self._armed: list[Fault] = []
        self._requests_by_proxy: Counter[str] = Counter()
        self._requests = 0
        self._cleared = asyncio.Event()

    def arm(self, fault: Fault) -> None:
        self._armed.append(fault)

    def clear(self) -> None:
        """Remove all faults, and unblock proxies."""
        self._armed.clear()
        self._requests_by_proxy.clear()
        self._cleared.set()
        self._cleared = asyncio.Event()

    async def wait_cleared(self) -> None:
        """Wait until the current faults are removed."""
        await self._cleared.wait()

    def next(self, proxy: str | None, path: str, text: str = "") -> Fault | None:
        self._requests += 1
        return self._armed_for(proxy, path, text) or self._blocked(proxy) or self._by_chance()

    def _armed_for(self, proxy: str | None, path: str, text: str) -> Fault | None:
        for index, fault in enumerate(self._armed):
            if not fault.matches(proxy, path, text):
                continue
            if fault.after:
                self._armed[index] = replace(fault, after=fault.after - 1)
                return None
            if fault.times is not None:
                left = fault.times - 1
                self._armed[index : index + 1] = [replace(fault, times=left)] if left else []
            return fault
        return None

    def _blocked(self, proxy: str | None) -> Fault | None:
        if self._block_after is None or proxy is None:
            return None
        self._requests_by_proxy[proxy] += 1
        if self._requests_by_proxy[proxy] <= self._block_after:
            return None
        return Fault(trouble=FaultKind.STATUS, status=BLOCKED, times=None)

    def _by_chance(self) -> Fault | None:
        chance = Random(f"{self._seed}:{self._requests}")  # noqa: S311 — a world, not a secret
        if chance.random() >= self._rate:
            return None
        kind, options = chance.choice(self._chances)
        return Fault.of({"trouble": kind, **options})
