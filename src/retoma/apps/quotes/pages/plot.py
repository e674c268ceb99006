"""Prices as a picture: those that count on one line, the chosen one through them, outliers set apart.

One mistake of ten times the price would press all others into one spot: the scale is that of the accepted
ones, and what lies outside of it stands in a margin of its own, at no scale.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

WIDTH: Final = 480.0
MARGIN: Final = 70.0  # left and right: where outliers stand
TOP: Final = 26.0  # where the chosen price is written
ROW: Final = 15.0
BELOW: Final = 24.0  # where the scale is written
EDGE: Final = 52.0  # half of what is written about the chosen one


@dataclass(frozen=True, slots=True)
class Dot:
    """One price."""

    store: str
    price: Decimal
    used: bool
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Plot:
    """Where everything stands."""

    width: float
    height: float
    dots: Sequence[Dot]
    chosen: float  # where its line is
    written: float  # where it is written
    low: Decimal
    high: Decimal
    left: float
    right: float
    apart_left: bool
    apart_right: bool


def plot_of(chosen: Decimal, prices: Sequence[tuple[str, Decimal, bool]]) -> Plot | None:
    """`prices`: of which store, how much, whether it counts. None: nothing counts."""
    counted = [price for _, price, used in prices if used]
    if not counted:
        return None
    low, high = min(*counted, chosen), max(*counted, chosen)
    left, right = MARGIN, WIDTH - MARGIN

    def place(price: Decimal) -> float:
        if low == high:
            return (left + right) / 2
        return left + float((price - low) / (high - low)) * (right - left)

    def outside(price: Decimal) -> float:
        return left / 2 if price < low else (right + WIDTH) / 2

    dots = [
        Dot(store, price, used, place(price) if used else outside(price), TOP + ROW * (n + 0.5))
        for n, (store, price, used) in enumerate(sorted(prices, key=lambda each: each[1]))
    ]
    at = place(chosen)
    apart = [price for _, price, used in prices if not used]
    return Plot(
        width=WIDTH,
        height=TOP + ROW * len(dots) + BELOW,
        dots=dots,
        chosen=at,
        written=min(max(at, EDGE), WIDTH - EDGE),
        low=low,
        high=high,
        left=left,
        right=right,
        apart_left=any(price < low for price in apart),
        apart_right=any(price > high for price in apart),
    )
