"""The truth of this world: every match of every round, made of a seed; what is known of it, and when.

Time goes in steps. At step 0 most matches are over; the others come to their end later, by their course.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from random import Random
from typing import Any, Final
from zoneinfo import ZoneInfo

from retoma.apps.matches.sandbox.leagues import LEAGUES, STARTERS, League, Player, Team, squad
from retoma.engine.rules.errors import BadInput
from retoma.words import say

UNFINISHED: Final = 0.05  # of the matches, at step 0
NINETY: Final = 90
HALF: Final = 45
SEEN_LIVE: Final = 60  # the minute at which a live match is looked at
STATISTICS: Final = (
    *("possession", "shots", "shots_on_target", "corners"),
    *("fouls", "offsides", "passes"),
)
GOALS: Final = ("goal", "own_goal", "penalty")
# Of events of one minute, this is the order.
KINDS: Final = (*GOALS, "yellow", "red", "substitution")


class Status(StrEnum):
    SCHEDULED = "scheduled"
    LIVE = "live"
    FINISHED = "finished"
    POSTPONED = "postponed"


class Course(StrEnum):
    """How a match comes to its end: a status for each step, the last for good."""

    USUAL = "usual"
    LIVE = "live"
    SCHEDULED = "scheduled"
    POSTPONED = "postponed"
    UNPUBLISHED = "unpublished"  # listed in its round, but its page is not there yet: 404


_S = Status
STEPS: Final[dict[Course, tuple[Status, ...]]] = {
    Course.USUAL: (_S.FINISHED,),
    Course.LIVE: (_S.LIVE, _S.FINISHED),
    Course.SCHEDULED: (_S.SCHEDULED, _S.LIVE, _S.FINISHED),
    Course.POSTPONED: (_S.POSTPONED, _S.POSTPONED, _S.FINISHED),
    Course.UNPUBLISHED: (_S.FINISHED,),
}
LAST_STEP: Final = max(len(steps) for steps in STEPS.values()) - 1  # all is over


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`side` is that of the player: an own goal counts for the other. `other` leaves the pitch."""

    minute: int
    added: int | None = None
    side: str  # home or away
    kind: str
    player: str
    other: str | None = None

    @property
    def order(self) -> tuple[Any, ...]:
        side = self.side != "home"
        return self.minute, self.added or 0, KINDS.index(self.kind), side, self.player

    @property
    def counts_for(self) -> str | None:
        """The side that has a goal by it."""
        if self.kind not in GOALS:
            return None
        return (
            ("away" if self.side == "home" else "home")
            if self.kind == "own_goal"
            else self.side
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """What is known of a match at one step."""

    id: int
    league: League
    round: int
    place: int  # in its round, from 0
    home: Team
    away: Team
    kickoff: datetime | None  # None: nobody has said when
    stadium: str
    course: Course
    status: Status
    published: bool
    score: tuple[int, int] | None
    events: tuple[Event, ...]
    statistics: dict[str, tuple[int, int]]
    lineups: dict[str, tuple[tuple[Player, ...], tuple[Player, ...]]]  # by side: first, bench
    walkover: bool = False  # awarded: nobody has played it

    def coach(self, side: str) -> str:
        """Who leads the team, and does not play."""
        return f"{(self.home if side == 'home' else self.away).short} Treinador"

    @property
    def key(self) -> str:
        return f"{self.home.key}-x-{self.away.key}"

    @property
    def path(self) -> str:
        return f"/{self.league.name}/{self.league.year}/jogo/{self.id}"

    def plain(self) -> dict[str, Any]:
        """As a right reader has it, in plain values."""
        return {
            **self.listed(),
            "league": str(self.league.name),
            "season": self.league.year,
            "round": self.round,
            "stadium": self.stadium,
            "score": None if self.score is None else _both(*self.score),
            "events": [
                {
                    "minute": each.minute,
                    "added": each.added,
                    "side": each.side,
                    "kind": each.kind,
                    "player": each.player,
                    "other": each.other,
                }
                for each in self.events
            ],
            "statistics": {name: _both(*told) for name, told in self.statistics.items()}
            or None,
            "lineups": {
                side: {**_named(*told), "staff": [self.coach(side)]}
                for side, told in self.lineups.items()
            }
            or None,
            "walkover": self.walkover,
        }

    def listed(self) -> dict[str, Any]:
        """The same, as far as the page of its round knows it."""
        return {
            "key": self.key,
            "home": self.home.key,
            "away": self.away.key,
            "kickoff": None if self.kickoff is None else f"{self.kickoff:%Y-%m-%dT%H:%M:%SZ}",
            "status": str(self.status),
        }


class Season:
    """Every match of one seed, in both leagues."""

    def __init__(self, seed: int = 1, *, unfinished: float = UNFINISHED) -> None:
        self.seed = seed
        self.unfinished = unfinished
        self.leagues = LEAGUES
        self._pairs = lru_cache(maxsize=None)(self._made_pairs)
        self._whole = lru_cache(maxsize=None)(self._made)
        self._squad = lru_cache(maxsize=None)(
            lambda league, team: squad(seed, LEAGUES[league], team)
        )

    def round(self, league: str, number: int, step: int = 0) -> tuple[Match, ...]:
        """The matches of a round, in the order of its page."""
        known = self._league(league)
        if not 1 <= number <= known.rounds:
            raise BadInput(
                say("{league} has the rounds 1 to {last}", league=league, last=known.rounds)
            )
        return tuple(self.match(league, number, each, step) for each in range(known.each))

    def match(self, league: str, number: int, place: int, step: int = 0) -> Match:
        return at_step(self._whole(league, number, place), step)

    def by_id(self, league: str, id_: int, step: int = 0) -> Match | None:
        number, place = divmod(id_ - 1000, 100)
        known = self._league(league)
        if not (1 <= number <= known.rounds and 0 <= place < known.each):
            return None
        return self.match(league, number, place, step)

    def every(self, league: str, step: int = 0) -> Iterator[Match]:
        for number in range(1, self._league(league).rounds + 1):
            yield from self.round(league, number, step)

    def course(self, league: str, number: int, place: int) -> Course:
        chance = Random(f"{self.seed}:course:{league}:{number}:{place}")  # noqa: S311 — a world
        if chance.random() >= self.unfinished:
            return Course.USUAL
        return chance.choice([each for each in Course if each is not Course.USUAL])

    def _league(self, name: str) -> League:
        if name not in LEAGUES:
            raise BadInput(
                say(
                    "the leagues are {known}, not {name!r}", known=", ".join(LEAGUES), name=name
                )
            )
        return LEAGUES[name]

    def _made_pairs(self, league: str) -> Sequence[Sequence[tuple[Team, Team]]]:
        teams = list(LEAGUES[league].teams)
        Random(f"{self.seed}:pairs:{league}").shuffle(teams)  # noqa: S311 — a world
        first = list(_everybody_once(teams))
        return [*first, *([(away, home) for home, away in each] for each in first)]

    def _made(self, league: str, number: int, place: int) -> Match:
        home, away = self._pairs(league)[number - 1][place]
        course = self.course(league, number, place)
        chance = Random(f"{self.seed}:match:{league}:{number}:{place}")  # noqa: S311 — a world
        squads = {"home": self._squad(league, home), "away": self._squad(league, away)}
        lineups = {side: _lineup(chance, players) for side, players in squads.items()}
        events = _played(chance, lineups)
        return Match(
            id=1000 + number * 100 + place,
            league=LEAGUES[league],
            round=number,
            place=place,
            home=home,
            away=away,
            kickoff=_kickoff(chance, LEAGUES[league], number),
            stadium=f"Estádio {home.short}",
            course=course,
            status=Status.FINISHED,
            published=True,
            score=score_of(events),
            events=events,
            statistics=_counted(chance, score_of(events)),
            lineups=lineups,
        )


def at_step(match: Match, step: int) -> Match:
    """What is known of it by then."""
    steps = STEPS[match.course]
    status = steps[min(step, len(steps) - 1)]
    published = match.course is not Course.UNPUBLISHED or step > 0
    match status:
        case Status.FINISHED:
            return replace(match, published=published)
        case Status.LIVE:
            events = tuple(each for each in match.events if each.minute <= SEEN_LIVE)
            return replace(match, status=status, events=events, score=score_of(events))
        case Status.SCHEDULED | Status.POSTPONED:
            nothing: dict[str, Any] = {"events": (), "statistics": {}, "lineups": {}}
            kickoff = None if status is Status.POSTPONED else match.kickoff
            return replace(match, status=status, kickoff=kickoff, score=None, **nothing)


def score_of(events: Sequence[Event]) -> tuple[int, int]:
    sides = [each.counts_for for each in events]
    return sides.count("home"), sides.count("away")


def _both(home: int, away: int) -> dict[str, int]:
    return {"home": home, "away": away}


def _named(first: Sequence[Player], bench: Sequence[Player]) -> dict[str, Any]:
    return {
        role: [{"number": each.number, "name": each.name} for each in players]
        for role, players in (("starters", first), ("bench", bench))
    }


def _everybody_once(teams: list[Team]) -> Iterator[list[tuple[Team, Team]]]:
    """The first half of a season: one team stays, the others go round."""
    fixed, moving = teams[0], teams[1:]
    for turn in range(len(moving)):
        row = [fixed, *moving[turn:], *moving[:turn]]
        pairs = [(row[n], row[-1 - n]) for n in range(len(row) // 2)]
        yield [(away, home) if turn % 2 else (home, away) for home, away in pairs]


def _kickoff(chance: Random, league: League, number: int) -> datetime:
    day = datetime(league.year, 1, 31, tzinfo=ZoneInfo(league.zone)) + timedelta(
        weeks=number - 1
    )
    local = day + timedelta(days=chance.randint(0, 1))
    return local.replace(
        hour=chance.choice((11, 16, 18, 20, 21)), minute=chance.choice((0, 30))
    ).astimezone(UTC)


# — ninety minutes —


def _lineup(
    chance: Random, players: Sequence[Player]
) -> tuple[tuple[Player, ...], tuple[Player, ...]]:
    drawn = sorted(chance.sample(players[1:], STARTERS - 1), key=lambda each: each.number)
    first = (players[0], *drawn)
    return first, tuple(each for each in players if each not in first)


def _played(
    chance: Random, lineups: dict[str, tuple[tuple[Player, ...], tuple[Player, ...]]]
) -> tuple[Event, ...]:
    """Who comes on does so late and does nothing: whoever scores is on the pitch."""
    made: list[Event] = []
    for side, (first, bench) in lineups.items():
        pitch = [each.name for each in first]
        staying = pitch[:8]
        for _ in range(chance.choices(range(6), (24, 34, 24, 11, 5, 2))[0]):
            kind = chance.choices(GOALS, (86, 3, 11))[0]
            made.append(_event(chance, side, kind, chance.choice(staying)))
        made += [
            _event(chance, side, "yellow", name)
            for name in chance.sample(staying, chance.randint(0, 4))
        ]
        if chance.random() < 0.06:
            made.append(Event(minute=NINETY, added=3, side=side, kind="red", player=staying[1]))
        for off, on in zip(pitch[8:], bench[: chance.randint(1, 3)], strict=False):
            came = _event(chance, side, "substitution", on.name)
            made.append(replace(came, other=off))
    return tuple(sorted(made, key=lambda each: each.order))


def _event(chance: Random, side: str, kind: str, player: str) -> Event:
    minute = chance.randint(1, NINETY)
    added = chance.randint(1, 6) if minute in (HALF, NINETY) and chance.random() < 0.6 else None
    return Event(minute=minute, added=added, side=side, kind=kind, player=player)


def _counted(chance: Random, score: tuple[int, int]) -> dict[str, tuple[int, int]]:
    possession = chance.randint(30, 70)
    on_target = tuple(goals + chance.randint(0, 5) for goals in score)
    shots = tuple(each + chance.randint(2, 12) for each in on_target)

    def two(least: int, most: int) -> tuple[int, int]:
        return chance.randint(least, most), chance.randint(least, most)

    return {
        "possession": (possession, 100 - possession),
        "shots": (shots[0], shots[1]),
        "shots_on_target": (on_target[0], on_target[1]),
        "corners": two(0, 14),
        "fouls": two(5, 25),
        "offsides": two(0, 7),
        "passes": two(180, 720),
    }
