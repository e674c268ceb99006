"""Judge what was measured of a family: each size against the bound of its door, and how cost grows between sizes."""

from collections.abc import Sequence
from typing import Any, Final

from tests.cost.family import Family

STEEPEST: Final = 3.0  # times the cost for twice the input: 2 is linear, 4 is quadratic
LONGEST_HOLD: Final = 0.1  # seconds of CPU for which the loop does nothing else
TOO_LITTLE: Final = 0.03  # seconds of CPU of which a ratio says nothing


def flaws_of(
    family: Family, sizes: Sequence[dict[str, Any]], *, soak: bool = False
) -> list[str]:
    """Name what costs too much. `sizes` are two, of which one is four times the other, or grow by doubling."""
    found, cost = [], family.cost
    for one in sizes:
        size = one["size"]
        if one["cpu"] > cost.fixed_cpu + cost.cpu * size / (1 << 20):
            found.append(f"{family.title}: {size} bytes take {one['cpu']:.2f} s of CPU")
        if one["memory"] > cost.fixed_memory + cost.memory * size:
            found.append(f"{family.title}: {size} bytes take {one['memory']:,} of memory")
        if soak and family.on_loop and one["held"] > LONGEST_HOLD:
            found.append(f"{family.title}: {size} bytes hold the loop for {one['held']:.2f} s")
    last, first = sizes[-1], sizes[max(len(sizes) - 3, 0)]
    if last["cpu"] > TOO_LITTLE and (last["cpu"] / first["cpu"]) ** 0.5 > STEEPEST:
        found.append(
            f"{family.title}: from {first['cpu']:.3f} to {last['cpu']:.3f} s for four times as much"
        )
    return found
