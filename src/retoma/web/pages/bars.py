"""How a bar of many is parted, for every page that draws one."""

from collections.abc import Iterable
from typing import Final, TypeVar

T = TypeVar("T")

WIDTH: Final = 1000.0
LEAST: Final = 4.0  # one of a million is seen too


def parts_of(counted: Iterable[tuple[T, int]], whole: int) -> list[tuple[T, float, float]]:
    """Which, where it begins, how wide it is; what there is none of has no part."""
    begin, parts = 0.0, []
    for which, n in counted:
        if n:
            width = max(n * WIDTH / whole, LEAST)
            parts.append((which, begin, width))
            begin += width
    return parts
