"""A match site in a box: two leagues, a page for each round and match, two layouts, ill on demand."""

from retoma.sandbox.matches.layouts import Layout
from retoma.sandbox.matches.leagues import HOSTILE, LEAGUES, League, Player, Team
from retoma.sandbox.matches.odd import Odd
from retoma.sandbox.matches.season import (
    LAST_STEP,
    UNFINISHED,
    Course,
    Event,
    Match,
    Season,
    Status,
)
from retoma.sandbox.matches.services import BRIEF, CHANCES, LATENCY, Matches, build_site
from retoma.sandbox.matches.site import World

__all__ = [
    "BRIEF",
    "CHANCES",
    "HOSTILE",
    "LAST_STEP",
    "LATENCY",
    "LEAGUES",
    "UNFINISHED",
    "Course",
    "Event",
    "Layout",
    "League",
    "Match",
    "Matches",
    "Odd",
    "Player",
    "Season",
    "Status",
    "Team",
    "World",
    "build_site",
]
