"""Pages read in a confined child: by whom they are asked for, and what comes back of them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from retoma.apps.matches.clients.parsers import draft_match, parse_match, parse_round
from retoma.apps.matches.model import LayoutChanged, PageRefused, Problem, SchemaInvalid, Wanted
from retoma.apps.matches.schemas import MatchPage, RoundPage
from retoma.apps.matches.sites import Site, site_of
from retoma.engine.isolation.isolate import ChildDied, Limits

# Calls a function at the top of a module with a file of these bytes, in a child.
ReadApart = Callable[..., Awaitable[Any]]

LIMITS: Final = Limits(timeout=30.0, cpu=15.0, memory=256 * 2**20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Of which site a page is, and by which parsers it is read."""

    league: str
    origin: str
    layouts: tuple[str, ...]

    @classmethod
    def of(cls, site: Site) -> "Place":
        return cls(league=site.league.key, origin=site.origin, layouts=site.layouts)

    def site(self) -> Site:
        return site_of(self.league).at(self.origin).read_by(*self.layouts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A page as JSON, or why it was refused."""

    page: str | None = None
    selector: str = ""
    layout: str = ""
    problems: tuple[Problem, ...] = ()

    def refusal(self) -> PageRefused:
        if self.problems:
            return SchemaInvalid(problems=self.problems)
        return LayoutChanged(selector=self.selector, layout=self.layout)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """What a page seems to say. `kickoff` is apart: JSON knows no time."""

    told: dict[str, Any]
    kickoff: datetime | None


async def read_match(
    read: ReadApart, site: Site, html: bytes, *, wanted: Wanted, charset: str | None
) -> MatchPage:
    return MatchPage.model_validate_json(
        await _page(read(match_of, html, Place.of(site), wanted, charset, limits=LIMITS))
    )


async def read_round(
    read: ReadApart,
    site: Site,
    html: bytes,
    *,
    season: int,
    round_: int,
    charset: str | None,
) -> RoundPage:
    return RoundPage.model_validate_json(
        await _page(
            read(round_of, html, Place.of(site), season, round_, charset, limits=LIMITS)
        )
    )


async def draft(
    read: ReadApart, site: Site, html: bytes, charset: str | None
) -> dict[str, Any]:
    try:
        drafted: Drafted = await read(draft_of, html, Place.of(site), charset, limits=LIMITS)
    except (ChildDied, TimeoutError):
        return {}
    return {**drafted.told, "kickoff": drafted.kickoff}


async def _page(reading: Awaitable[Outcome]) -> str:
    """JSON of a page; PageRefused where it is none, also where reading it takes too much."""
    try:
        outcome = await reading
    except (ChildDied, TimeoutError):
        raise SchemaInvalid(problems=[Problem("page", "takes too much to read")]) from None
    if outcome.page is None:
        raise outcome.refusal()
    return outcome.page


# — in the child —


def match_of(path: str, place: Place, wanted: Wanted, charset: str | None) -> Outcome:
    content = Path(path).read_bytes()
    return _outcome(lambda: parse_match(place.site(), content, wanted=wanted, charset=charset))


def round_of(path: str, place: Place, season: int, round_: int, charset: str | None) -> Outcome:
    content = Path(path).read_bytes()
    return _outcome(
        lambda: parse_round(
            place.site(), content, season=season, round_=round_, charset=charset
        )
    )


def draft_of(path: str, place: Place, charset: str | None) -> Drafted:
    told = draft_match(place.site(), Path(path).read_bytes(), charset)
    kickoff = told.pop("kickoff", None)
    return Drafted(told=told, kickoff=kickoff if isinstance(kickoff, datetime) else None)


def _outcome(parse: Callable[[], MatchPage | RoundPage]) -> Outcome:
    try:
        return Outcome(page=parse().model_dump_json())
    except LayoutChanged as refused:
        return Outcome(selector=refused.selector, layout=refused.layout)
    except SchemaInvalid as refused:
        return Outcome(problems=refused.problems)
