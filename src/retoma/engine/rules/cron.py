"""When a schedule ticks: a cron line in a time zone, told as instants. Pure.

Five fields, as Debian's cron reads them: minute, hour, day of the month, month, day of the week. A
tick that falls into the hour that a change of clocks leaves out comes right after it; one in the hour
that comes twice comes once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from retoma.engine.rules.errors import BadInput
from retoma.words import say

FIELDS = 5
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Cron:
    """One line, and where its clock hangs. What no calendar has is refused."""

    line: str
    timezone: str

    def __post_init__(self) -> None:
        self._zone()
        line = cast("object", self.line)
        fields = line.split() if isinstance(line, str) else []
        if len(fields) != FIELDS:
            raise BadInput(
                say(
                    "{line!r} is no cron line: it has {has} fields, not {fields}"
                    " (minute hour day month weekday)",
                    line=self.line,
                    has=len(fields),
                    fields=FIELDS,
                )
            )
        self.after(datetime(2000, 1, 1, tzinfo=UTC))

    def after(self, at: datetime) -> datetime:
        """The first tick later than this."""
        return next(self._ticks(at))

    def until(self, at: datetime) -> datetime:
        """The last tick not later than this, whatever number came before it."""
        local = (at + SECOND).astimezone(self._zone())
        found = (tick.astimezone(UTC) for tick in CronSim(self.line, local, reverse=True))
        return next(tick for tick in found if tick <= at)

    def between(self, after: datetime, until: datetime) -> list[datetime]:
        """Every tick later than the one and not later than the other."""
        ticks = []
        for tick in self._ticks(after):
            if tick > until:
                break
            ticks.append(tick)
        return ticks

    def _ticks(self, after: datetime) -> Iterator[datetime]:
        last = after
        try:
            for tick in CronSim(self.line, after.astimezone(self._zone())):
                at = tick.astimezone(UTC)
                # In the hour that comes twice the line is read by the wall once more.
                if at > last:
                    last = at
                    yield at
        except CronSimError as error:
            raise BadInput(
                say("{line!r} is no cron line: {why}", line=self.line, why=_plain(error))
            ) from error
        raise BadInput(say("{line!r} never ticks: no year has such a day", line=self.line))

    def _zone(self) -> ZoneInfo:
        try:
            return ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
            raise BadInput(
                say(
                    "no time zone is called {timezone!r}; write one like"
                    " America/Sao_Paulo or UTC",
                    timezone=self.timezone,
                )
            ) from error


def _plain(error: CronSimError) -> str:
    text = str(error)
    return text[:1].lower() + text[1:]
