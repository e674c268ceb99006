"""Pages of rounds and matches, read: pure functions of what a site sent, so that they can be replayed.

Nothing is fetched here. A page gives one of the schemas, or LayoutChanged, or SchemaInvalid: nothing else,
whatever it holds. A new layout is a new folder and a new line; the old ones stay, for pages that were kept.
A package brings others by entry points: `retoma.matches.layouts` names a Layout.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final

from retoma.apps.matches.clients.parsers import classic, modern
from retoma.apps.matches.clients.parsers.reading import Lenient, Page, opened
from retoma.apps.matches.layouts import EACH_SITE, GROUP
from retoma.apps.matches.model import (
    LayoutChanged,
    PageRefused,
    Problem,
    SchemaInvalid,
    Wanted,
)
from retoma.apps.matches.schemas import MatchPage, RoundPage, match_key, validated
from retoma.apps.matches.sites import Site
from retoma.engine.rules.errors import BadInput
from retoma.words import say

__all__ = [
    "Layout",
    "Page",
    "Parser",
    "checked_layouts",
    "draft_match",
    "layouts",
    "parse_match",
    "parse_round",
]

Reader = Callable[[Page, Site], dict[str, Any]]

MOVED: Final = timedelta(days=60)  # a match is played no further from the day its round gave


@dataclass(frozen=True, slots=True)
class Parser:
    """How one page of a layout is known, and read."""

    root: str
    read: Reader


@dataclass(frozen=True, slots=True)
class Layout:
    """How a site draws its pages."""

    round: Parser
    match: Parser


_OURS: Final[Mapping[str, Layout]] = {
    "classic": Layout(
        Parser(classic.rounds.ROOT, classic.rounds.read),
        Parser(classic.match.ROOT, classic.match.read),
    ),
    "modern": Layout(
        Parser(modern.rounds.ROOT, modern.rounds.read),
        Parser(modern.match.ROOT, modern.match.read),
    ),
}


@cache
def layouts() -> Mapping[str, Layout]:
    """Every layout by its name, ours and those of other packages."""
    found = dict(_OURS)
    for point in entry_points(group=GROUP):
        layout = point.load()
        if point.name in found or not isinstance(layout, Layout):
            raise BadInput(
                say(
                    "{where} is no Layout, or another is called {name!r} already",
                    where=point.value,
                    name=point.name,
                )
            )
        found[point.name] = layout
    return found


def parse_round(
    site: Site,
    html: str | bytes,
    layout: str | None = None,
    *,
    season: int | None = None,
    round_: int | None = None,
    charset: str | None = None,
) -> RoundPage:
    """`layout`: by this one alone, not by those of the site. What was asked for, if it is given,
    must be what the page is of. `charset`: as the answer's header names it."""
    found = _read(
        site, html, layout, {name: each.round for name, each in layouts().items()}, charset
    )
    flaws = [*_of_league(site, found), *_named(site, found["matches"])]
    for place, each in enumerate(found["matches"]):
        url = site.match_url(str(each["url"]))
        if url is None:
            why = f"leads to no match of {site.origin}: {str(each['url'])[:80]!r}"
            flaws.append(Problem(f"matches[{place}].url", why))
        each["url"] = url
    if flaws:
        raise SchemaInvalid(problems=flaws)
    page = validated(RoundPage, found)
    _check([("season", season, page.season), ("round", round_, page.round)])
    return page


def parse_match(
    site: Site,
    html: str | bytes,
    layout: str | None = None,
    *,
    wanted: Wanted | None = None,
    charset: str | None = None,
) -> MatchPage:
    """`layout`: by this one alone, not by those of the site. `wanted`: of which match it must be."""
    found = _read(
        site, html, layout, {name: each.match for name, each in layouts().items()}, charset
    )
    flaws = [*_of_league(site, found), *_named(site, [found], "")]
    if flaws:
        raise SchemaInvalid(problems=flaws)
    page = validated(MatchPage, found)
    if wanted is not None:
        _check(
            [(name, getattr(wanted, name), getattr(page, name)) for name in ASKED],
            _moved_far(wanted.kickoff, page),
        )
    return page


ASKED: Final = ("season", "round", "key")


def _moved_far(known: datetime | None, page: MatchPage) -> list[Problem]:
    """Whether it says another day than the page of its round did, by more than a match is put off."""
    if known is None or page.kickoff is None or abs(page.kickoff - known) <= MOVED:
        return []
    days = abs(page.kickoff - known).days
    why = f"is {days} days from {known:%Y-%m-%d}, the day on the page of its round"
    return [Problem("kickoff", why)]


def draft_match(site: Site, html: str | bytes, charset: str | None = None) -> dict[str, Any]:
    """What a page seems to say, by whichever layout knows it: for a person who puts it right.

    Nothing in it was checked; empty, where nobody can tell."""
    try:
        tree = opened(html, charset)
        for name, layout in layouts().items():
            if tree.css_first(layout.match.root) is not None:
                return layout.match.read(Lenient(tree, name), site)
    except PageRefused:
        pass
    return {}


def _read(
    site: Site,
    html: str | bytes,
    layout: str | None,
    parsers: Mapping[str, Parser],
    charset: str | None,
) -> dict[str, Any]:
    """By the first parser that knows the page."""
    tree = opened(html, charset)
    wanted = site.layouts if layout is None else (layout,)
    for name in wanted:
        if tree.css_first(parsers[name].root) is not None:
            return parsers[name].read(Page(tree, name), site)
    raise LayoutChanged(selector=parsers[wanted[0]].root, layout=wanted[0])


def _of_league(site: Site, found: dict[str, Any]) -> list[Problem]:
    """The league by its key, in place, if the page names the one that was asked for."""
    named = found.get("league")
    if not isinstance(named, str) or not site.league.is_called(named):
        why = f"{site.league.key} was asked for, the page is of {str(named)[:80]!r}"
        return [Problem("league", why)]
    found["league"] = site.league.key
    return []


def _named(
    site: Site, pairs: list[dict[str, Any]], path: str = "matches[{place}]."
) -> "list[Problem]":
    """Teams by their keys, in place; and those that nobody knows."""
    flaws = []
    for place, each in enumerate(pairs):
        for side in ("home", "away"):
            key = site.league.team_key(each[side])
            if key is None:
                why = f"no team of {site.league.key} is called {each[side][:80]!r}"
                flaws.append(Problem(f"{path.format(place=place)}{side}", why))
            each[side] = key
        each["key"] = match_key(each["home"] or "", each["away"] or "")
    return flaws


def _check(asked: list[tuple[str, Any, Any]], more: list[Problem] | None = None) -> None:
    """SchemaInvalid with everything that is not as it was asked for."""
    flaws = [
        Problem(path, f"{wanted} was asked for, the page is of {found}")
        for path, wanted, found in asked
        if wanted is not None and wanted != found
    ]
    flaws += more or []
    if flaws:
        raise SchemaInvalid(problems=flaws)


def checked_layouts(said: str) -> tuple[str, ...]:
    """Names of layouts, the newest first; nothing where each site is read by its own."""
    if said.strip() == EACH_SITE:
        return ()
    names = tuple(each.strip() for each in said.split(","))
    unknown = [each for each in names if each not in layouts()]
    if unknown:
        raise BadInput(
            say(
                "the layouts are {known}, not {unknown}",
                known=", ".join(layouts()),
                unknown=", ".join(unknown),
            )
        )
    return names
