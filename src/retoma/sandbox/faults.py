"""What may go wrong with a site: on demand, by seed, and for a proxy that has asked too often."""

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
# What chance brings, where it is asked for: each as likely as the others.
BY_CHANCE: Final[Sequence[tuple[str, dict[str, Any]]]] = (
    ("slow", {"seconds": 0.2}),
    ("status", {"status": 429, "retry_after": 1}),
    ("status", {"status": 500}),
    ("cut", {}),
)


class Trouble(StrEnum):
    """How a request fares badly."""

    SLOW = "slow"  # answered, but late
    STATUS = "status"  # answered with this status in place of a page
    HOLD = "hold"  # answered once its faults are taken back
    HANG = "hang"  # never answered
    CUT = "cut"  # the connection breaks in the middle of the page


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One kind of trouble, for whom, and how often."""

    trouble: Trouble
    status: int = 500
    seconds: float = 1.0
    retry_after: int | None = None
    path: str = ""  # only below this one
    about: str = ""  # only where the request says this, anywhere
    proxy: str | None = None  # only through this one
    after: int = 0  # requests that go well first
    times: int | None = 1  # None: until it is taken back

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "Fault":
        """As somebody asks for it; what makes no sense is refused."""
        known = set(cls.__dataclass_fields__)
        try:
            made = cls(**{**told, "trouble": Trouble(told.get("trouble", ""))})
            well = (
                0 <= made.seconds <= MOST
                and made.after >= 0
                and (made.times is None or made.times > 0)
                and 400 <= made.status < 600
            )
        except (TypeError, ValueError):
            well = False
        if not well:
            raise BadInput(
                say("a fault has {known}, each as it should be", known=", ".join(sorted(known)))
            )
        return made

    def meets(self, proxy: str | None, path: str, text: str) -> bool:
        return (
            path.startswith(self.path)
            and self.proxy in (None, proxy)
            and self.about.casefold() in text.casefold()
        )


class Faults:
    """Decides, for each request in its turn, what becomes of it."""

    def __init__(
        self,
        *,
        seed: int = 1,
        rate: float = 0.0,
        block_after: int | None = None,
        by_chance: Sequence[tuple[str, dict[str, Any]]] = BY_CHANCE,
    ) -> None:
        """`rate`: the share of requests to which chance brings trouble, one of `by_chance`.
        `block_after`: how many requests one proxy has; from then on it is blocked."""
        self._seed = seed
        self._rate = rate
        self._block_after = block_after
        self._chances = by_chance
        self._armed: list[Fault] = []
        self._asked: Counter[str] = Counter()
        self._turn = 0
        self._peace = asyncio.Event()

    def arm(self, fault: Fault) -> None:
        self._armed.append(fault)

    def clear(self) -> None:
        """All is well again, for blocked proxies too."""
        self._armed.clear()
        self._asked.clear()
        self._peace.set()
        self._peace = asyncio.Event()

    async def peace(self) -> None:
        """Until the faults of now are taken back."""
        await self._peace.wait()

    def next(self, proxy: str | None, path: str, text: str = "") -> Fault | None:
        self._turn += 1
        return self._armed_for(proxy, path, text) or self._blocked(proxy) or self._by_chance()

    def _armed_for(self, proxy: str | None, path: str, text: str) -> Fault | None:
        for place, fault in enumerate(self._armed):
            if not fault.meets(proxy, path, text):
                continue
            if fault.after:
                self._armed[place] = replace(fault, after=fault.after - 1)
                return None
            if fault.times is not None:
                left = fault.times - 1
                self._armed[place : place + 1] = [replace(fault, times=left)] if left else []
            return fault
        return None

    def _blocked(self, proxy: str | None) -> Fault | None:
        if self._block_after is None or proxy is None:
            return None
        self._asked[proxy] += 1
        if self._asked[proxy] <= self._block_after:
            return None
        return Fault(trouble=Trouble.STATUS, status=BLOCKED, times=None)

    def _by_chance(self) -> Fault | None:
        chance = Random(f"{self._seed}:{self._turn}")  # noqa: S311 — a world, not a secret
        if chance.random() >= self._rate:
            return None
        trouble, how = chance.choice(self._chances)
        return Fault.of({"trouble": trouble, **how})
