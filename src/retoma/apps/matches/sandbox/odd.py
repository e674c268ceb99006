"""What may be wrong with the page of one match, or with its place on the page of its round: on demand."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from retoma.apps.matches.sandbox.leagues import Player
from retoma.apps.matches.sandbox.season import Event, Match

OVERRIDE: Final = "\u202e"  # turns the direction of what follows; no part of anybody's name
STRANGER: Final = "Ninguém Conhece"


class Odd(StrEnum):
    """The name by which a test asks for it."""

    SCORE_100 = "score_100"  # a hundred to nothing
    UNEQUAL = "unequal"  # the goals do not add up to the score
    UNORDERED = "unordered"  # events in any order
    STRANGER = "stranger"  # a goal of somebody in no line-up
    LATE = "late"  # a card in minute 135
    TWICE_ON = "twice_on"  # one player on both lists of a side
    COACH = "coach"  # a card for who leads a team
    GOALLESS = "goalless"  # nothing happened in ninety minutes
    WALKOVER = "walkover"  # one side did not come: no events, line-ups, statistics
    OTHER_ROUND = "other_round"
    OTHER_SEASON = "other_season"
    OTHER_LEAGUE = "other_league"
    OTHER_DAY = "other_day"  # half a year after the day its round says
    MOJIBAKE = (
        "mojibake"  # letters that somebody has read by the wrong charset, and sent as they came
    )
    LATIN_1_REFUSED = "latin_1_refused"  # the same, with a score that cannot be
    LATIN_1 = "latin_1"  # in another charset, which it declares
    HOSTILE = "hostile"  # every name turns the text around it
    NO_SCORE = "no_score"  # the score is not there at all
    NO_LINEUP = "no_lineup"
    EMPTY = "empty"  # the possession is there, and says nothing
    WORDS = "words"  # the possession is a word
    UNKNOWN_STATUS = "unknown_status"
    OTHER = "other"  # the page of another match
    ALIEN = "alien"  # a riddle for robots in place of the page
    GARBLED = "garbled"  # not in the encoding it says
    DEEP = "deep"
    DRIP = "drip"  # it comes in drops, and ends in the middle
    HUGE = "huge"  # 50 MB
    MOVED = "moved"  # its page is at another address of the site, and says so by 301
    MOVED_AWAY = "moved_away"  # the same, on another site
    OFF_SITE = "off_site"  # its round links elsewhere
    TO_LOOPBACK = "to_loopback"
    LISTED_TWICE = "listed_twice"
    UNLISTED = "unlisted"  # its round lacks it, and says one fewer
    NOT_LISTED = "not_listed"  # its round says how many there are, and lacks it


def oddly(match: Match, odd: Odd | None) -> Match:
    """What the page says in place of the truth."""
    change = None if odd is None else CHANGES.get(odd)
    return match if change is None else change(match)


def _hundred(match: Match) -> Match:
    return replace(match, score=(100, 0))


def _unequal(match: Match) -> Match:
    home, away = match.score or (0, 0)
    return replace(match, score=(home + 1, away))


def _unordered(match: Match) -> Match:
    return replace(match, events=tuple(sorted(match.events, key=lambda each: each.player)))


def _strange_goal(match: Match) -> Match:
    goal = Event(minute=90, added=9, side="home", kind="goal", player=STRANGER)
    return replace(_unequal(match), events=(*match.events, goal))


def _late_card(match: Match) -> Match:
    player = match.lineups["home"][0][0].name
    card = Event(minute=135, side="home", kind="yellow", player=player)
    return replace(match, events=(*match.events, card))


def _twice_on(match: Match) -> Match:
    first, bench = match.lineups["home"]
    lineups = {**match.lineups, "home": (first, (*bench, first[0]))}
    return replace(match, lineups=lineups)


def _carded_coach(match: Match) -> Match:
    coach = match.coach("home")
    card = Event(minute=90, added=1, side="home", kind="yellow", player=coach)
    events = sorted((*match.events, card), key=lambda each: each.order)
    return replace(match, events=tuple(events))


def _goalless(match: Match) -> Match:
    return replace(match, events=(), score=(0, 0))


def _walkover(match: Match) -> Match:
    nothing: dict[str, Any] = {"events": (), "statistics": {}, "lineups": {}}
    return replace(match, score=(3, 0), walkover=True, **nothing)


def _next_round(match: Match) -> Match:
    return replace(match, round=match.round + 1)


def _last_season(match: Match) -> Match:
    return replace(match, league=replace(match.league, year=match.league.year - 1))


def _other_league(match: Match) -> Match:
    return replace(match, league=replace(match.league, title="Copa da Várzea"))


def _other_day(match: Match) -> Match:
    moved = None if match.kickoff is None else match.kickoff + timedelta(days=180)
    return replace(match, kickoff=moved)


def _mojibake(match: Match) -> Match:
    return replace(match, stadium="Estádio do Grêmio".encode().decode("latin-1"))


def _turned(match: Match) -> Match:
    def players(these: tuple[Player, ...]) -> tuple[Player, ...]:
        return tuple(replace(each, name=OVERRIDE + each.name) for each in these)

    return replace(
        match,
        home=replace(
            match.home, short=OVERRIDE + match.home.short, long=match.home.long + OVERRIDE
        ),
        events=tuple(
            replace(
                each,
                player=OVERRIDE + each.player,
                other=each.other and each.other + OVERRIDE,
            )
            for each in match.events
        ),
        lineups={side: (players(a), players(b)) for side, (a, b) in match.lineups.items()},
    )


# Those that are no part of a match's own page change nothing here.
CHANGES: Final[Mapping[Odd, Callable[[Match], Match]]] = {
    Odd.SCORE_100: _hundred,
    Odd.LATIN_1_REFUSED: _hundred,
    Odd.UNEQUAL: _unequal,
    Odd.UNORDERED: _unordered,
    Odd.STRANGER: _strange_goal,
    Odd.LATE: _late_card,
    Odd.TWICE_ON: _twice_on,
    Odd.COACH: _carded_coach,
    Odd.GOALLESS: _goalless,
    Odd.WALKOVER: _walkover,
    Odd.OTHER_ROUND: _next_round,
    Odd.OTHER_SEASON: _last_season,
    Odd.OTHER_LEAGUE: _other_league,
    Odd.OTHER_DAY: _other_day,
    Odd.MOJIBAKE: _mojibake,
    Odd.HOSTILE: _turned,
}
