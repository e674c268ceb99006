"""Families of hostile inputs: each makes one of about so many bytes, and says what reading it may cost.

To add a door: write a module like `web.py` with `FAMILIES`, a list of `Family`, and `opened()`, an async context
manager whose value every `read` is given first; name it in `MODULES` of `doors.py`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

KIBIBYTE: Final = 1024
MEBIBYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The bound of one door."""

    cpu: float  # seconds for each MiB
    memory: float  # bytes for each byte of the input, at the peak
    fixed_cpu: float = 0.1  # seconds that any input may take: a busy machine counts too
    fixed_memory: int = 8 * MEBIBYTE  # caches, pages that the allocator keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Inputs that are hostile in one way, for one door."""

    door: str
    name: str  # in what way
    make: Callable[[int], Any]
    read: Callable[[Any, Any], Awaitable[object]]  # what was opened, and one input
    cost: Cost
    smallest: int = 64 * KIBIBYTE  # in the soak
    largest: int = 96 * KIBIBYTE  # in every run
    limit: int = MEBIBYTE  # in the soak: as much as the door takes
    on_loop: bool = True  # as it is read where it is used: the loop may not be held by it
    in_gate: bool = (
        True  # else only in the soak: another door with the same reader is in the gate
    )

    @property
    def title(self) -> str:
        return f"{self.door}: {self.name}"

    def sizes(self, *, soak: bool) -> list[int]:
        """In every run two, of which one is four times the other; in the soak by doubling."""
        if not soak:
            return [self.largest // 4, self.largest]
        found = [self.smallest]
        while 2 * found[-1] <= self.limit:
            found.append(2 * found[-1])
        return found
