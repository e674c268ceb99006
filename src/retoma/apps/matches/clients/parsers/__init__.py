"""Pages of rounds and matches, read: pure functions of what a site sent, so that they can be replayed.

Nothing is fetched here. A page gives one of the schemas, or LayoutChanged, or SchemaInvalid: nothing else,
whatever it holds. A new layout is a new folder and a new line; the old ones stay, for pages that were kept.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from retoma.apps.matches.clients.parsers import classic, modern
from retoma.apps.matches.clients.parsers.reading import Lenient, Page, opened
from retoma.apps.matches.model import LayoutChanged, PageRefused, Problem, SchemaInvalid
from retoma.apps.matches.schemas import MatchPage, RoundPage, match_key, validated
from retoma.apps.matches.sites import Site

__all__ = ["LAYOUTS", "Parser", "draft_match", "parse_match", "parse_round"]

Reader = Callable[[Page, Site], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Parser:
    """How one page of a layout is known, and read."""

    root: str
    read: Reader


@dataclass(frozen=True, slots=True)
class Parsers:
    round: Parser
    match: Parser


LAYOUTS: Final[Mapping[str, Parsers]] = {
    "classic": Parsers(
        Parser(classic.rounds.ROOT, classic.rounds.read),
        Parser(classic.match.ROOT, classic.match.read),
    ),
    "modern": Parsers(
        Parser(modern.rounds.ROOT, modern.rounds.read),
        Parser(modern.match.ROOT, modern.match.read),
    ),
}


def parse_round(
    site: Site,
    html: str | bytes,
    layout: str | None = None,
    *,
    season: int | None = None,
    round_: int | None = None,
) -> RoundPage:
    """`layout`: by this parser alone, not by those of the site. What was asked for, if it is told,
    must be what the page is of."""
    told = _read(site, html, layout, {name: each.round for name, each in LAYOUTS.items()})
    flaws = list(_named(site, told["matches"]))
    for place, each in enumerate(told["matches"]):
        url = site.match_url(str(each["url"]))
        if url is None:
            why = f"leads to no match of {site.origin}: {str(each['url'])[:80]!r}"
            flaws.append(Problem(f"matches[{place}].url", why))
        each["url"] = url
    if flaws:
        raise SchemaInvalid(problems=flaws)
    page = validated(RoundPage, {"league": site.league.key, **told})
    _is("season", season, page.season)
    _is("round", round_, page.round)
    return page


def parse_match(
    site: Site, html: str | bytes, layout: str | None = None, *, key: str | None = None
) -> MatchPage:
    """`layout`: by this parser alone, not by those of the site. `key`: of which match it must be."""
    told = _read(site, html, layout, {name: each.match for name, each in LAYOUTS.items()})
    flaws = list(_named(site, [told], ""))
    if flaws:
        raise SchemaInvalid(problems=flaws)
    page = validated(MatchPage, {"league": site.league.key, **told})
    _is("key", key, page.key)
    return page


def draft_match(site: Site, html: str | bytes) -> dict[str, Any]:
    """What a page seems to say, by whichever layout knows it: for a person who puts it right.

    Nothing in it was checked; empty, where nobody can tell."""
    try:
        tree = opened(html)
        for name, layout in LAYOUTS.items():
            if tree.css_first(layout.match.root) is not None:
                return layout.match.read(Lenient(tree, name), site)
    except PageRefused:
        pass
    return {}


def _read(
    site: Site, html: str | bytes, layout: str | None, parsers: Mapping[str, Parser]
) -> dict[str, Any]:
    """By the first parser that knows the page."""
    tree = opened(html)
    wanted = site.layouts if layout is None else (layout,)
    for name in wanted:
        if tree.css_first(parsers[name].root) is not None:
            return parsers[name].read(Page(tree, name), site)
    raise LayoutChanged(selector=parsers[wanted[0]].root, layout=wanted[0])


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


def _is(path: str, wanted: int | str | None, found: int | str) -> None:
    if wanted is not None and wanted != found:
        raise SchemaInvalid(
            problems=[Problem(path, f"{wanted} was asked for, the page is of {found}")]
        )
