"""What may be wrong with the page of one match, or with its place on the page of its round: on demand."""

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
    match odd:
        case Odd.SCORE_100 | Odd.LATIN_1_REFUSED:
            return replace(match, score=(100, 0))
        case Odd.UNEQUAL:
            home, away = match.score or (0, 0)
            return replace(match, score=(home + 1, away))
        case Odd.UNORDERED:
            return replace(
                match, events=tuple(sorted(match.events, key=lambda each: each.player))
            )
        case Odd.STRANGER:
            goal = Event(minute=90, added=9, side="home", kind="goal", player=STRANGER)
            home, away = match.score or (0, 0)
            return replace(match, events=(*match.events, goal), score=(home + 1, away))
        case Odd.LATE:
            player = match.lineups["home"][0][0].name
            card = Event(minute=135, side="home", kind="yellow", player=player)
            return replace(match, events=(*match.events, card))
        case Odd.TWICE_ON:
            first, bench = match.lineups["home"]
            lineups = {**match.lineups, "home": (first, (*bench, first[0]))}
            return replace(match, lineups=lineups)
        case Odd.COACH:
            coach = match.coach("home")
            card = Event(minute=90, added=1, side="home", kind="yellow", player=coach)
            events = sorted((*match.events, card), key=lambda each: each.order)
            return replace(match, events=tuple(events))
        case Odd.GOALLESS:
            return replace(match, events=(), score=(0, 0))
        case Odd.WALKOVER:
            nothing: dict[str, Any] = {"events": (), "statistics": {}, "lineups": {}}
            return replace(match, score=(3, 0), walkover=True, **nothing)
        case Odd.OTHER_ROUND:
            return replace(match, round=match.round + 1)
        case Odd.OTHER_SEASON:
            return replace(match, league=replace(match.league, year=match.league.year - 1))
        case Odd.OTHER_LEAGUE:
            return replace(match, league=replace(match.league, title="Copa da Várzea"))
        case Odd.OTHER_DAY:
            moved = None if match.kickoff is None else match.kickoff + timedelta(days=180)
            return replace(match, kickoff=moved)
        case Odd.MOJIBAKE:
            stadium = "Estádio do Grêmio".encode().decode("latin-1")
            return replace(match, stadium=stadium)
        case Odd.HOSTILE:
            return _turned(match)
        case _:
            return match


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
