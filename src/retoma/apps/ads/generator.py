"""Missions by rule: days cut into windows, for each language and media type one mission. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from retoma.apps.ads.model import MediaType, NewMission
from retoma.engine.rules.errors import BadInput
from retoma.words import say

MOST: Final = 1_000  # missions at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """What each of them is about."""

    languages: tuple[str, ...]
    media_types: tuple[MediaType, ...]
    days: int = 1  # in one mission


def windows(first: date, last: date, days: int) -> Iterator[tuple[date, date]]:
    """The days in order, so many at a time; the last window may be shorter."""
    while first <= last:
        end = min(first + timedelta(days=days - 1), last)
        yield first, end
        first = end + timedelta(days=1)


def generate(first: date, last: date, pattern: Pattern) -> list[NewMission]:
    """Each combination once, day by day."""
    each_day = len(set(pattern.languages)) * len(set(pattern.media_types))
    n = -(-((last - first).days + 1) // pattern.days) * each_day
    if n > MOST:
        raise BadInput(
            say(
                "that would be {n} missions, and at most {most} are made at a time",
                n=n,
                most=MOST,
            )
        )
    return [
        NewMission(begin, end, media, (language,))
        for begin, end in windows(first, last, pattern.days)
        for language in dict.fromkeys(pattern.languages)
        for media in dict.fromkeys(pattern.media_types)
    ]
