"""Leagues and sites, as data: who plays, where the pages are, which layouts read them, what an answer means.

Ours are the files of `leagues`. A package brings others by entry points: `retoma.matches.sites` names a Site,
or several.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from importlib.metadata import entry_points
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from retoma.apps.matches.model import MatchStatus, Verdict
from retoma.engine.rules.errors import BadInput, NotFound, Permanent, Throttled, Transient
from retoma.outbound import FailureType
from retoma.text import normalize
from retoma.words import say

GROUP: Final = "retoma.matches.sites"  # of entry points
YEARS: Final = (1900, 2100)
OVER: Final = timedelta(hours=2)  # after its kick-off a match is over, as a rule
SOON: Final = timedelta(minutes=1)
LONG: Final = timedelta(days=7)  # a match is never left alone for longer

# What a status means where a site says nothing of its own (H-43). 404: it is not published yet.
USUAL: Final[Mapping[int, Verdict]] = {
    403: Verdict.FATAL,
    404: Verdict.NOT_YET,
    410: Verdict.FATAL,
    **dict.fromkeys((408, 425, 429, 500, 502, 503, 504), Verdict.TRANSIENT),
}
# When a match that is not over is looked at again.
RECHECK: Final[Mapping[MatchStatus | None, timedelta]] = {
    MatchStatus.LIVE: timedelta(minutes=5),
    MatchStatus.SCHEDULED: timedelta(hours=1),
    MatchStatus.POSTPONED: timedelta(hours=6),
    None: timedelta(minutes=30),  # its page is not there yet
}


@dataclass(frozen=True, slots=True)
class Team:
    """What we call it, and what sites call it besides."""

    name: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class League:
    key: str
    name: str
    zone: str  # of times that name none
    rounds: int
    teams: Mapping[str, Team]
    matches: int | None = None  # of a round; None: nobody knows before its page says so
    aliases: tuple[str, ...] = ()  # what sites call it besides
    _keys: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = {
            slug(name): key
            for key, team in self.teams.items()
            for name in (key, team.name, *team.aliases)
        }
        object.__setattr__(self, "_keys", known)

    def team_key(self, name: str) -> str | None:
        """Of a team, however it is called; None: nobody here is called so.

        Never a guess: a match under two names would be two matches (R2)."""
        return self._keys.get(slug(name))

    def is_called(self, name: str) -> bool:
        return slug(name) in {slug(each) for each in (self.key, self.name, *self.aliases)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a league's pages are and how they are read: `layouts` by their names, the newest first.

    Without an `origin` it is where the operator says: RETOMA_MATCHES_URL."""

    league: League
    layouts: tuple[str, ...]
    origin: str = ""
    round_path: str = "/{league}/{season}/rodada/{round}"
    match_path: str = r"/{league}/\d{{4}}/jogo/\d{{1,12}}"  # a pattern: all a link may lead to
    verdicts: Mapping[int, Verdict] = field(default_factory=lambda: USUAL)
    recheck: Mapping[MatchStatus | None, timedelta] = field(default_factory=lambda: RECHECK)

    def at(self, origin: str) -> "Site":
        """The same where the operator says; a site that names its origin stays there."""
        return self if self.origin else replace(self, origin=origin.rstrip("/"))

    def read_by(self, *layouts: str) -> "Site":
        """The same, by these layouts first: after its pages have changed."""
        return replace(self, layouts=tuple(dict.fromkeys((*layouts, *self.layouts))))

    def round_url(self, season: int, number: int) -> str:
        if not 1 <= number <= self.league.rounds:
            last = self.league.rounds
            raise BadInput(
                say("{league} has the rounds 1 to {last}", league=self.league.key, last=last)
            )
        if not YEARS[0] <= season <= YEARS[1]:
            raise BadInput(say("a season is a year, not {season}", season=season))
        path = self.round_path.format(league=self.league.key, season=season, round=number)
        return f"{self.origin}{path}"

    def match_url(self, link: str) -> str | None:
        """Where a link of a page leads; None: not to a match of this site (H-47)."""
        try:
            url = urljoin(f"{self.origin}/", link.strip())
            parts, own = urlsplit(url), urlsplit(self.origin)
        except ValueError:
            return None
        pattern = self.match_path.format(league=re.escape(self.league.key))
        same = (parts.scheme, parts.netloc) == (own.scheme, own.netloc)
        plain = not parts.query and not parts.fragment
        return url if same and plain and re.fullmatch(pattern, parts.path) else None

    def verdict(self, status: int) -> Verdict:
        """What an answer that is no success means for a task."""
        usual = Verdict.TRANSIENT if status >= 500 else Verdict.FATAL
        return self.verdicts.get(status, usual)

    def sorts(self) -> dict[int, FailureType]:
        """The same, as an outbound policy wants it: `Policy(answers=site.sorts())`."""
        return {status: _SORTS[verdict] for status, verdict in self.verdicts.items()} | {
            429: FailureType(Throttled, "throttled")
        }

    def look_again(
        self, status: MatchStatus | None, kickoff: datetime | None, now: datetime
    ) -> timedelta:
        """How long a match that is not over is left alone: until it should be over, if that is known.

        `status` None: its page is not published yet."""
        usual = self.recheck[status]
        if kickoff is None or status is MatchStatus.LIVE:
            return usual
        return min(max(kickoff + OVER - now, usual, SOON), LONG)


_SORTS: Final[Mapping[Verdict, FailureType]] = {
    Verdict.TRANSIENT: FailureType(Transient, "transient"),
    Verdict.NOT_YET: FailureType(Transient, "NOT_PUBLISHED"),
    Verdict.FATAL: FailureType(Permanent, "SITE_REFUSED"),
}


def slug(name: str) -> str:
    """Letters and digits without their marks, in lower case, with - between words."""
    plain = normalize("NFKD", name.casefold())
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"[\u0300-\u036f]", "", plain)).strip("-")


def site_of(league: str) -> Site:
    known = sites()
    if league not in known:
        raise NotFound(
            say("the leagues are {known}, not {name!r}", known=", ".join(known), name=league)
        )
    return known[league]


def known_league(key: str) -> League | None:
    """None: it was scraped once, and is no league of ours any more."""
    site = sites().get(key)
    return None if site is None else site.league


def league_name(key: str) -> str:
    league = known_league(key)
    return key if league is None else league.name


def team_name(league: str, key: str) -> str:
    known = known_league(league)
    return key if known is None or key not in known.teams else known.teams[key].name


# — ours, and those of other packages —


@cache
def sites() -> Mapping[str, Site]:
    """Every site by the key of its league. A package's stands before ours; two packages may not have one league."""
    found = {each.key: Site(league=each, layouts=("classic",)) for each in _own_leagues()}
    brought: dict[str, str] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        for site in _sites_at(point.load(), point.value):
            key = site.league.key
            if brought.setdefault(key, point.value) != point.value:
                raise BadInput(
                    say(
                        "the league {league} is brought by {first} and by {second}: uninstall one",
                        league=key,
                        first=brought[key],
                        second=point.value,
                    )
                )
            found[key] = site
    return found


def _sites_at(given: Any, where: str) -> tuple[Site, ...]:
    many = isinstance(given, list | tuple)
    these: tuple[Any, ...] = tuple(given) if many else (given,)
    if not all(isinstance(each, Site) for each in these):
        raise BadInput(say("{where} is no Site and no list of them", where=where))
    return these


def _own_leagues() -> list[League]:
    folder = resources.files("retoma.apps.matches.leagues")
    files = sorted(each.name for each in folder.iterdir() if each.name.endswith(".toml"))
    return [read_league(folder.joinpath(each).read_text("utf-8")) for each in files]


def read_league(text: str) -> League:
    """A league as TOML: key, name, zone, rounds, matches, and a list of names for each team."""
    given = tomllib.loads(text)
    teams = {key: Team(names[0], tuple(names[1:])) for key, names in given.pop("teams").items()}
    return League(**{**given, "aliases": tuple(given.get("aliases", ()))}, teams=teams)
