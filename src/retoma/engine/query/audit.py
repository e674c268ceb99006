"""Who did what: lines of the audit log and what people did to jobs, as one list."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from retoma.codec import decode
from retoma.db import Row, Transaction, moment
from retoma.engine.query.page import SQL, checked
from retoma.engine.rules.errors import BadInput
from retoma.words import say

LOOK = 1_000  # lines that one page looks at

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)


class Spot(NamedTuple):
    """Where a line stands among all of them."""

    at: datetime
    source: int  # 0: the audit log, 1: a job's timeline
    x: int
    y: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSearch:
    """Which lines somebody wants; None: whatever it is."""

    actor: str | None = None
    verb: str | None = None
    subject: str | None = None
    text: str | None = None  # in the subject or the details
    since: datetime | None = None
    until: datetime | None = None
    access: bool = False  # also what was done to people, keys and sessions: for admins

    def __post_init__(self) -> None:
        for each in (self.since, self.until):
            if each is not None and each.tzinfo is None:
                raise BadInput(
                    say("{at} needs a time zone: it could be any instant", at=each.isoformat())
                )
        if self.since is not None and self.until is not None and self.until < self.since:
            raise BadInput(
                say(
                    "until ({until}) is before since ({since})",
                    until=self.until.isoformat(),
                    since=self.since.isoformat(),
                )
            )

    @property
    def sifts(self) -> bool:
        """Whether lines are met that are not wanted; time alone is looked up."""
        beside = (self.actor, self.verb, self.subject, self.text)
        return any(each is not None for each in beside)


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One thing that somebody did."""

    spot: Spot
    actor: str | None
    verb: str
    subject: str
    details: Any

    @property
    def at(self) -> datetime:
        return self.spot.at

    @property
    def job(self) -> int | None:
        return self.spot.x if self.spot.source else None


class AuditPage(NamedTuple):
    """What was found, and after which line the next look begins; None: nothing is left."""

    lines: list[AuditLine]
    next: Spot | None


def search_audit(
    tx: Transaction,
    search: AuditSearch,
    *,
    after: Spot | None = None,
    limit: int = 50,
) -> AuditPage:
    """Newest first, among the newest so many lines."""
    checked(limit, "events")
    begin = after or Spot(search.until or END_OF_TIME, -1, 0, 0)
    look = LOOK if search.sifts else limit + 1
    rows = tx.all(
        SQL.list_audit,
        at=begin.at,
        source=begin.source,
        x=begin.x,
        y=begin.y,
        since=search.since or BEGINNING,
        access=search.access,
        look=look,
    )
    met = [_line(row) for row in rows]
    found = [line for line in met if _wanted(line, search)]
    if len(found) > limit:
        return AuditPage(found[:limit], found[limit - 1].spot)
    return AuditPage(found, met[-1].spot if len(met) == look else None)


def _line(row: Row) -> AuditLine:
    when, source, x, y, actor, verb, subject, details = row
    told = None if details is None else decode(details)
    return AuditLine(Spot(moment(when), source, x, y), actor, verb, subject, told)


def _wanted(line: AuditLine, search: AuditSearch) -> bool:
    exact = (
        (search.actor, line.actor),
        (search.verb, line.verb),
        (search.subject, line.subject),
    )
    if any(wanted is not None and wanted != has for wanted, has in exact):
        return False
    text = search.text
    return text is None or text.casefold() in f"{line.subject} {line.details}".casefold()
