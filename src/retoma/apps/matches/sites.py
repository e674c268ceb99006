"""Leagues and sites, as data: who plays, where the pages are, which parsers read them, what an answer means."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urljoin, urlsplit

from retoma.apps.matches.model import MatchStatus, Verdict
from retoma.engine.errors import BadInput, NotFound, Permanent, Throttled, Transient
from retoma.outbound import Sort
from retoma.text import normalize
from retoma.words import say

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a league's pages are and how they are read: `layouts` are parsers, the newest first."""

    league: League
    origin: str
    layouts: tuple[str, ...]
    round_path: str = "/{league}/{season}/rodada/{round}"
    match_path: str = r"/{league}/\d{{4}}/jogo/\d{{1,12}}"  # a pattern: all a link may lead to
    verdicts: Mapping[int, Verdict] = field(default_factory=lambda: USUAL)
    recheck: Mapping[MatchStatus | None, timedelta] = field(default_factory=lambda: RECHECK)

    def at(self, origin: str) -> "Site":
        """The same, somewhere else."""
        return replace(self, origin=origin.rstrip("/"))

    def read_by(self, *layouts: str) -> "Site":
        """The same, by these parsers: after a layout has changed."""
        return replace(self, layouts=layouts)

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

    def sorts(self) -> dict[int, Sort]:
        """The same, as an outbound policy wants it: `Policy(answers=site.sorts())`."""
        return {status: _SORTS[verdict] for status, verdict in self.verdicts.items()} | {
            429: Sort(Throttled, "throttled")
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


_SORTS: Final[Mapping[Verdict, Sort]] = {
    Verdict.TRANSIENT: Sort(Transient, "transient"),
    Verdict.NOT_YET: Sort(Transient, "NOT_PUBLISHED"),
    Verdict.FATAL: Sort(Permanent, "SITE_REFUSED"),
}


def slug(name: str) -> str:
    """Letters and digits without their marks, in lower case, with - between words."""
    plain = normalize("NFKD", name.casefold())
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"[\u0300-\u036f]", "", plain)).strip("-")


def site_of(league: str, sites: Mapping[str, Site] | None = None) -> Site:
    known = SITES if sites is None else sites
    if league not in known:
        raise NotFound(
            say("the leagues are {known}, not {name!r}", known=", ".join(known), name=league)
        )
    return known[league]


BRASILEIRAO: Final = League(
    key="brasileirao",
    name="Brasileirão Série A",
    zone="America/Sao_Paulo",
    rounds=38,
    teams={
        "athletico-pr": Team("Athletico-PR", ("Athletico Paranaense", "Athletico")),
        "atletico-mg": Team("Atlético-MG", ("Atlético Mineiro",)),
        "bahia": Team("Bahia", ("Esporte Clube Bahia", "EC Bahia")),
        "botafogo": Team("Botafogo", ("Botafogo de Futebol e Regatas", "Botafogo-RJ")),
        "bragantino": Team("Bragantino", ("Red Bull Bragantino", "RB Bragantino")),
        "chapecoense": Team("Chapecoense", ("Associação Chapecoense de Futebol",)),
        "corinthians": Team("Corinthians", ("Corinthians Paulista",)),
        "coritiba": Team("Coritiba", ("Coritiba Foot Ball Club",)),
        "cruzeiro": Team("Cruzeiro", ("Cruzeiro Esporte Clube",)),
        "flamengo": Team("Flamengo", ("Clube de Regatas do Flamengo", "CR Flamengo")),
        "fluminense": Team("Fluminense", ("Fluminense Football Club",)),
        "gremio": Team("Grêmio", ("Grêmio Foot-Ball Porto Alegrense",)),
        "internacional": Team("Internacional", ("Sport Club Internacional", "Inter")),
        "mirassol": Team("Mirassol", ("Mirassol Futebol Clube",)),
        "palmeiras": Team("Palmeiras", ("Sociedade Esportiva Palmeiras",)),
        "remo": Team("Remo", ("Clube do Remo",)),
        "santos": Team("Santos", ("Santos Futebol Clube", "Santos FC")),
        "sao-paulo": Team("São Paulo", ("São Paulo Futebol Clube", "São Paulo FC")),
        "vasco": Team("Vasco", ("Vasco da Gama", "CR Vasco da Gama")),
        "vitoria": Team("Vitória", ("Esporte Clube Vitória", "EC Vitória")),
    },
)
LIGA_PORTUGAL: Final = League(
    key="liga-portugal",
    name="Liga Portugal",
    zone="Europe/Lisbon",
    rounds=34,
    teams={
        "alverca": Team("Alverca", ("FC Alverca",)),
        "arouca": Team("Arouca", ("FC Arouca",)),
        "avs": Team("AVS", ("AVS Futebol SAD",)),
        "benfica": Team("Benfica", ("Sport Lisboa e Benfica", "SL Benfica")),
        "braga": Team("Braga", ("Sporting Clube de Braga", "SC Braga")),
        "casa-pia": Team("Casa Pia", ("Casa Pia Atlético Clube",)),
        "estoril": Team("Estoril", ("Estoril Praia",)),
        "estrela": Team("Estrela", ("Estrela da Amadora",)),
        "famalicao": Team("Famalicão", ("FC Famalicão",)),
        "gil-vicente": Team("Gil Vicente", ("Gil Vicente Futebol Clube",)),
        "guimaraes": Team("V. Guimarães", ("Vitória Sport Clube", "Vitória de Guimarães")),
        "moreirense": Team("Moreirense", ("Moreirense FC",)),
        "nacional": Team("Nacional", ("Clube Desportivo Nacional",)),
        "porto": Team("Porto", ("Futebol Clube do Porto", "FC Porto")),
        "rio-ave": Team("Rio Ave", ("Rio Ave Futebol Clube",)),
        "santa-clara": Team("Santa Clara", ("Clube Desportivo Santa Clara",)),
        "sporting": Team("Sporting", ("Sporting Clube de Portugal", "Sporting CP")),
        "tondela": Team("Tondela", ("Clube Desportivo de Tondela",)),
    },
)

# Where nobody says otherwise nothing is there: an operator names the site he may scrape.
SITES: Final[Mapping[str, Site]] = {
    league.key: Site(league=league, origin="https://jogos.example", layouts=("classic",))
    for league in (BRASILEIRAO, LIGA_PORTUGAL)
}
