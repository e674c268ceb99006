"""Days and months as people count money: by the clocks of one time zone. Pure."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from retoma.engine.rules.errors import BadInput
from retoma.words import say


class Per(StrEnum):
    """What length of time is counted together."""

    WHOLE = "whole"
    DAY = "day"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class Span:
    """One of them: its name (`2026-03-14`, `2026-03`, or nothing), and from when until when."""

    name: str
    since: datetime
    until: datetime | None

    def has(self, at: datetime) -> bool:
        return self.since <= at and (self.until is None or at < self.until)


def per(text: object) -> Per:
    try:
        return Per(str(text))
    except ValueError:
        raise BadInput(
            say("a budget is per {all}, not {text!r}", all=", ".join(list(Per)[1:]), text=text)
        ) from None


def span(now: datetime, per: Per, zone: str) -> Span:
    """The one in which an instant lies."""
    if per is Per.WHOLE:
        return Span("", datetime(1970, 1, 1, tzinfo=UTC), None)
    place = ZoneInfo(zone)
    today = now.astimezone(place).date()
    if per is Per.DAY:
        return _between(today.isoformat(), today, today + timedelta(days=1), place)
    first = today.replace(day=1)
    then = (first + timedelta(days=31)).replace(day=1)
    return _between(f"{first:%Y-%m}", first, then, place)


def _between(name: str, first: date, then: date, place: ZoneInfo) -> Span:
    since, until = (datetime(d.year, d.month, d.day, tzinfo=place) for d in (first, then))
    return Span(name, since.astimezone(UTC), until.astimezone(UTC))
