"""Two ways in which a site draws its pages: nothing of one is found in the other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from retoma.apps.matches.sandbox.layouts import classic, modern
from retoma.apps.matches.sandbox.layouts.listing import Listing
from retoma.apps.matches.sandbox.odd import Odd
from retoma.apps.matches.sandbox.season import Match

__all__ = ["DRAWN", "Drawn", "Layout", "Listing"]


class Layout(StrEnum):
    CLASSIC = "classic"  # tables and Portuguese, as it was for ten years
    MODERN = "modern"  # sections and data attributes, since the relaunch


@dataclass(frozen=True, slots=True)
class Drawn:
    round: Callable[[Listing], str]
    match: Callable[[Match, Odd | None], str]


DRAWN: Final[Mapping[Layout, Drawn]] = {
    Layout.CLASSIC: Drawn(classic.round_page, classic.match_page),
    Layout.MODERN: Drawn(modern.round_page, modern.match_page),
}
