"""A match site in a box: two leagues, a page for each round and match, two layouts, ill on demand."""

from retoma.apps.matches.sandbox.layouts import Layout
from retoma.apps.matches.sandbox.leagues import HOSTILE, LEAGUES, League, Player, Team
from retoma.apps.matches.sandbox.odd import Odd
from retoma.apps.matches.sandbox.season import (
    LAST_STEP,
    UNFINISHED,
    Course,
    Event,
    Match,
    Season,
    Status,
)
from retoma.apps.matches.sandbox.services import BRIEF, CHANCES, LATENCY, Matches, build_site
from retoma.apps.matches.sandbox.site import World

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
