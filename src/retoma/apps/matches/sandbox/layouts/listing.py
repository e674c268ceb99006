"""What the page of a round shows."""

from dataclasses import dataclass

from retoma.apps.matches.sandbox.leagues import League
from retoma.apps.matches.sandbox.season import Match


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    league: League
    round: int
    total: int  # as it says itself
    matches: tuple[tuple[Match, str], ...]  # each with where it links to
