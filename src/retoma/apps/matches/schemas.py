"""What a round and a match are, strictly: what does not fit is refused whole, each flaw by its path (R4).

Events are told by minute, added time, kind, side and player, however a page orders them. An own goal has the
side of the player and counts for the other.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from retoma.apps.matches.model import (
    CARDS,
    GOALS,
    EventKind,
    MatchStatus,
    Problem,
    SchemaInvalid,
    Side,
)
from retoma.text import normalize

MOST_GOALS: Final = 30  # of one side
LAST_MINUTE: Final = 90
ADDED_AT: Final = (45, LAST_MINUTE)
MOST_ADDED: Final = 30
YEARS: Final = (1900, 2100)
MOST_MATCHES: Final = 50  # of a round: one that was put off may be played with another
STARTERS: Final = (7, 11)  # with fewer than seven nobody may play
BEFORE: Final = frozenset({MatchStatus.SCHEDULED, MatchStatus.POSTPONED})

# They turn the text around them, and belong to nobody's name.
TURNING: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
# Control characters, halves of characters, and what stands for a byte that could not be read.
BROKEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffd]")
# Two bytes of UTF-8 that somebody has read as two characters of another charset: `GrÃªmio`.
AFTER: Final = "".join(bytes([n]).decode("cp1252", "ignore") for n in range(0x80, 0xC0))
MOJIBAKE: Final = re.compile(f"[\u00c2\u00c3][\u0080-\u00bf{AFTER}]")
NUMBER: Final = re.compile(r"\s*([0-9]{1,4})%?\s*")

Page = TypeVar("Page", bound="Strict")


def clean(said: Any) -> Any:
    """A name as it is kept: composed, one space between words, nothing that turns the text."""
    if not isinstance(said, str):
        return said
    return " ".join(normalize("NFC", TURNING.sub("", said)).split())


def _readable(said: str) -> str:
    if BROKEN.search(said):
        raise ValueError("holds characters that cannot be read")
    if MOJIBAKE.search(said):
        raise ValueError("was read by the wrong charset")
    return said


def _number(said: Any) -> Any:
    """Of its digits; what has others is left as it is, to be refused."""
    found = NUMBER.fullmatch(said) if isinstance(said, str) else None
    return said if found is None else int(found[1])


def _in_utc(when: datetime) -> datetime:
    if not YEARS[0] <= when.year <= YEARS[1]:
        raise ValueError(f"the year {when.year} is none of a season")
    return when.astimezone(UTC)


# What comes before a bound is written last: then the bounds are pydantic's own, which are quick.
Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=100),
    AfterValidator(_readable),
    BeforeValidator(clean),
]
Key = Annotated[str, StringConstraints(pattern=r"\A[a-z0-9]+(-[a-z0-9]+)*\z", max_length=120)]
Address = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Count = Annotated[int, Field(ge=0, le=5_000), BeforeValidator(_number)]
Goals = Annotated[int, Field(ge=0, le=MOST_GOALS), BeforeValidator(_number)]
Minute = Annotated[int, Field(ge=1, le=LAST_MINUTE), BeforeValidator(_number)]
Added = Annotated[int, Field(ge=1, le=MOST_ADDED), BeforeValidator(_number)]
ShirtNumber = Annotated[int, Field(ge=1, le=99), BeforeValidator(_number)]
Year = Annotated[int, Field(ge=YEARS[0], le=YEARS[1]), BeforeValidator(_number)]
Round = Annotated[int, Field(ge=1, le=100), BeforeValidator(_number)]
Kickoff = Annotated[AwareDatetime, AfterValidator(_in_utc)]
Status = Annotated[MatchStatus, Field(strict=False)]


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class MatchRef(Strict):
    """A match, as far as the page of its round knows it."""

    key: Key
    url: Address
    home: Key
    away: Key
    kickoff: Kickoff | None
    status: Status


class RoundPage(Strict):
    league: Key
    season: Year
    round: Round
    total: Count  # as the page says; a page that was cut has fewer
    matches: Annotated[tuple[MatchRef, ...], Field(min_length=1, max_length=MOST_MATCHES)]

    @model_validator(mode="after")
    def _cross_checked(self) -> "RoundPage":
        return _checked(self, _flaws_of_round(self))


class Sides(Strict):
    home: Count
    away: Count


class Score(Strict):
    home: Goals
    away: Goals


class Player(Strict):
    number: ShirtNumber
    name: Name


class Lineup(Strict):
    """`staff`: coaches and their like. They do not play, and may be shown a card."""

    starters: Annotated[
        tuple[Player, ...], Field(min_length=STARTERS[0], max_length=STARTERS[1])
    ]
    bench: Annotated[tuple[Player, ...], Field(max_length=30)]
    staff: Annotated[tuple[Name, ...], Field(max_length=20)] = ()

    @property
    def names(self) -> frozenset[str]:
        return frozenset(each.name for each in (*self.starters, *self.bench))


class Lineups(Strict):
    home: Lineup
    away: Lineup


class Event(Strict):
    """`player` comes on where somebody is substituted, `other` leaves."""

    minute: Minute
    added: Added | None = None
    side: Annotated[Side, Field(strict=False)]
    kind: Annotated[EventKind, Field(strict=False)]
    player: Name
    other: Name | None = None

    @property
    def order(self) -> tuple[Any, ...]:
        away = self.side is Side.AWAY
        return self.minute, self.added or 0, ORDER[self.kind], away, self.player

    @property
    def counts_for(self) -> Side | None:
        """Who has a goal by it."""
        if self.kind not in GOALS:
            return None
        return self.side.other if self.kind is EventKind.OWN_GOAL else self.side


ORDER: Final[Mapping[EventKind, int]] = {kind: place for place, kind in enumerate(EventKind)}


def _in_order(events: tuple[Event, ...]) -> tuple[Event, ...]:
    return tuple(sorted(events, key=lambda each: each.order))


class Statistics(Strict):
    possession: Sides
    shots: Sides
    shots_on_target: Sides
    corners: Sides
    fouls: Sides
    offsides: Sides
    passes: Sides


class MatchPage(Strict):
    key: Key
    league: Key
    season: Year
    round: Round
    home: Key
    away: Key
    kickoff: Kickoff | None
    stadium: Name
    status: Status
    walkover: bool = False  # awarded: nobody has played it, or not to its end
    score: Score | None
    events: Annotated[tuple[Event, ...], Field(max_length=200), AfterValidator(_in_order)]
    statistics: Statistics | None
    lineups: Lineups | None

    @model_validator(mode="after")
    def _cross_checked(self) -> "MatchPage":
        return _checked(self, _flaws_of_match(self))


def validated(schema: type[Page], told: Any) -> Page:
    """One of these, or SchemaInvalid with every flaw that was found."""
    try:
        return schema.model_validate(_in_tuples(told))
    except ValidationError as error:
        raise SchemaInvalid(problems=list(_problems(error))) from None


def _in_tuples(told: Any) -> Any:
    """Lists in the place of tuples are as good."""
    if isinstance(told, dict):
        return {name: _in_tuples(each) for name, each in told.items()}
    return tuple(map(_in_tuples, told)) if isinstance(told, list | tuple) else told


def from_json(schema: type[Page], text: str | bytes) -> Page:
    """As it was stored, or as a person has put it right."""
    try:
        return schema.model_validate_json(text)
    except ValidationError as error:
        raise SchemaInvalid(problems=list(_problems(error))) from None


def match_key(home: str, away: str) -> str:
    """Which match of a round: the same on every site and in every layout (R2)."""
    return f"{home}-x-{away}"


# — cross-checks —


def _flaws_of_round(page: RoundPage) -> Iterator[Problem]:
    if page.total != len(page.matches):
        told = f"the page says {page.total} and lists {len(page.matches)}"
        yield Problem("total", told)
    for what in ("key", "url"):
        seen = Counter(getattr(each, what) for each in page.matches)
        for place, each in enumerate(page.matches):
            if seen[getattr(each, what)] > 1:
                yield Problem(f"matches[{place}].{what}", "is listed twice")
    playing = Counter(team for each in page.matches for team in (each.home, each.away))
    for place, each in enumerate(page.matches):
        yield from _flaws_of_pair(each, f"matches[{place}].")
        for side in Side:
            if playing[getattr(each, side)] > 1:
                yield Problem(f"matches[{place}].{side}", "plays twice in this round")


def _flaws_of_match(page: MatchPage) -> Iterator[Problem]:
    yield from _flaws_of_pair(page, "")
    yield from _flaws_of_date(page)
    if page.walkover and page.status is not MatchStatus.FINISHED:
        yield Problem("walkover", f"a match that is {page.status} is not awarded yet")
    if page.status in BEFORE:
        if page.score is not None or page.events:
            yield Problem("status", f"a match that is {page.status} has a score or events")
        return
    if page.score is None:
        yield Problem("score", f"a match that is {page.status} needs one")
    elif not page.walkover:  # what is awarded need not add up
        yield from _flaws_of_score(page.score, page.events)
    if page.lineups is not None:
        yield from _flaws_of_lineups(page.lineups)
        yield from _flaws_of_events(page.events, page.lineups)
    elif page.events or not page.walkover:
        yield Problem("lineups", f"a match that is {page.status} needs them")
    if page.statistics is not None:
        yield from _flaws_of_statistics(page.statistics)
    elif page.status is MatchStatus.FINISHED and not page.walkover:
        yield Problem("statistics", "a match that is finished needs them")


def _flaws_of_pair(page: MatchRef | MatchPage, before: str) -> Iterator[Problem]:
    if page.home == page.away:
        yield Problem(f"{before}away", "a team cannot play against itself")
    if page.key != match_key(page.home, page.away):
        yield Problem(f"{before}key", "does not name both teams")
    if page.kickoff is None and page.status is not MatchStatus.POSTPONED:
        yield Problem(f"{before}kickoff", f"a match that is {page.status} needs one")


def _flaws_of_date(page: MatchPage) -> Iterator[Problem]:
    """A season begins in its year and may end in the next."""
    if page.kickoff is not None and page.kickoff.year - page.season not in (0, 1):
        day = f"{page.kickoff:%Y-%m-%d}"
        yield Problem("kickoff", f"{day} is no day of the season {page.season}")


def _flaws_of_score(score: Score, events: Sequence[Event]) -> Iterator[Problem]:
    goals = Counter(each.counts_for for each in events)
    home, away = goals[Side.HOME], goals[Side.AWAY]
    if (home, away) != (score.home, score.away):
        told = f"is {score.home}-{score.away}, and the goals make {home}-{away}"
        yield Problem("score", told)


def _flaws_of_lineups(lineups: Lineups) -> Iterator[Problem]:
    for side in Side:
        lineup: Lineup = getattr(lineups, side)
        numbers = Counter(each.number for each in (*lineup.starters, *lineup.bench))
        for number in (each for each, times in numbers.items() if times > 1):
            yield Problem(f"lineups.{side}", f"number {number} is there twice")


def _flaws_of_events(events: Sequence[Event], lineups: Lineups) -> Iterator[Problem]:
    known = {Side.HOME: lineups.home, Side.AWAY: lineups.away}
    for place, each in enumerate(events):
        path = f"events[{place}]"
        names = known[each.side].names
        if each.kind in CARDS:
            names |= frozenset(known[each.side].staff)
        for what, name in (("player", each.player), ("other", each.other)):
            if name is not None and name not in names:
                yield Problem(f"{path}.{what}", f"{name!r} is in no line-up of the {each.side}")
        if (each.other is not None) != (each.kind is EventKind.SUBSTITUTION):
            yield Problem(f"{path}.other", "is there for substitutions, and only for them")
        if each.added is not None and each.minute not in ADDED_AT:
            yield Problem(f"{path}.added", f"nothing is added to minute {each.minute}")


def _flaws_of_statistics(statistics: Statistics) -> Iterator[Problem]:
    possession = statistics.possession
    if possession.home + possession.away != 100:
        yield Problem("statistics.possession", "does not make a hundred")
    for side in Side:
        if getattr(statistics.shots_on_target, side) > getattr(statistics.shots, side):
            yield Problem(f"statistics.shots_on_target.{side}", "is more than all shots")


# — flaws, as pydantic tells them and as we do —


class _Flaws(ValueError):
    """Of a whole page: those that no field has by itself."""

    def __init__(self, found: Sequence[Problem]) -> None:
        super().__init__("does not add up")
        self.found = found


def _checked(page: Page, flaws: Iterator[Problem]) -> Page:
    found = list(flaws)
    if found:
        raise _Flaws(found)
    return page


def _problems(error: ValidationError) -> Iterator[Problem]:
    for each in error.errors(include_url=False):
        whole = each.get("ctx", {}).get("error")
        if isinstance(whole, _Flaws):
            yield from whole.found
            continue
        said = each["input"]
        shown = f": {said[:80]!r}" if isinstance(said, str) else ""
        yield Problem(_path(each["loc"]), f"{each['msg']}{shown}")


def _path(loc: Sequence[str | int]) -> str:
    path = ""
    for each in loc:
        path += f"[{each}]" if isinstance(each, int) else f".{each}" if path else each
    return path or "page"
