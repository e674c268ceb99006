"""What is old goes: whole jobs and all that is theirs, and never what somebody refers to."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from retoma.codec import encode
from retoma.db import Statement, Transaction, adhoc, moment
from retoma.engine.rules.errors import BadInput
from retoma.engine.store.cost import MOST_DAYS
from retoma.engine.store.rows import now, tell
from retoma.engine.store.verb import SQL
from retoma.words import say

PAGE = 2_000  # jobs looked at in one question
RETIRE_CHUNK = 500  # jobs that go in one transaction
RUNNERS = timedelta(days=1)  # how long the row of a runner that ended is shown
PACE = timedelta(days=30)  # how long throughput is told by the minute
TICKS = timedelta(days=30)
COSTS = timedelta(days=MOST_DAYS + 1)  # a day is over sooner in one time zone than in another
NEVER = datetime(1970, 1, 1, tzinfo=UTC)  # nothing of ours is older

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


class Refers(StrEnum):
    """To what a column of an application refers."""

    JOB = "job"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Reference:
    """A column whose values are ids of jobs or batches: what it names stays."""

    table: str
    column: str
    what: Refers = Refers.JOB

    def __post_init__(self) -> None:
        names = [*self.table.split("."), self.column]
        if len(names) > 3 or not all(_NAME.fullmatch(name) for name in names):
            raise BadInput(
                say(
                    "{table!r}, {column!r}: a reference is the name of a table, or of a"
                    " schema and a table, and of a column",
                    table=self.table,
                    column=self.column,
                )
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Instants before which things are old; the beginning of time where they never are."""

    done_before: datetime
    dead_before: datetime
    events_before: datetime

    @property
    def youngest(self) -> datetime:
        """Nothing that was submitted later can be old."""
        return max(self.done_before, self.dead_before)


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of jobs: which of them may go, where it ends, and whether older ones follow."""

    old: list[int]
    last: int
    more: bool


def bounds(
    tx: Transaction, *, done: float | None, dead: float | None, events: float | None
) -> Bounds:
    """From lengths of time; None keeps for ever."""
    at = now(tx)

    def before(length: float | None) -> datetime:
        return NEVER if length is None else at - timedelta(seconds=length)

    return Bounds(
        done_before=before(done), dead_before=before(dead), events_before=before(events)
    )


def may_retire(tx: Transaction) -> bool:
    """Whether this process may delete what is old: on PostgreSQL its role needs the right to."""
    [may] = tx.all(SQL.may_retire, into=bool)
    return may


def keep_pass(tx: Transaction, retired: Mapping[str, int]) -> None:
    """What a pass has deleted, for whoever asks when the last one was."""
    tx.run(SQL.keep_pass, told=encode({"at": now(tx).isoformat(), **retired}))


def keep_references(tx: Transaction, references: Sequence[Reference]) -> None:
    """For every runner to heed: whoever does the retention may not know these tables' owner."""
    known = set(list_references(tx))
    for each in references:
        if each not in known:
            tx.run(
                SQL.keep_reference,
                table_name=each.table,
                column_name=each.column,
                what=each.what,
            )


def list_references(tx: Transaction) -> list[Reference]:
    return tx.all(SQL.list_references, into=Reference)


def old_jobs(tx: Transaction, bounds: Bounds, after: int) -> Page:
    """The next stretch of jobs by id; ids go with the time of submission."""
    rows = tx.all(
        SQL.old_jobs,
        after=after,
        page=PAGE,
        done_before=bounds.done_before,
        dead_before=bounds.dead_before,
    )
    old = [job for job, _, goes in rows if goes]
    more = len(rows) == PAGE and moment(rows[-1][1]) < bounds.youngest
    return Page(old, rows[-1][0] if rows else after, more)


def retire_jobs(tx: Transaction, bounds: Bounds, jobs: Sequence[int], *, actor: str) -> int:
    """Delete those that are still old, still ended and referred to by nobody; how many."""
    held = tx.all(
        SQL.hold_old_jobs,
        into=int,
        jobs=json.dumps(list(jobs)),
        done_before=bounds.done_before,
        dead_before=bounds.dead_before,
    )
    goes = _unreferred(tx, Refers.JOB, held)
    if not goes:
        return 0
    gone = len(tx.all(SQL.retire_jobs, jobs=json.dumps(goes)))
    tell(
        tx, actor=actor, verb="retention.jobs", subject=f"{gone} jobs, {goes[0]} to {goes[-1]}"
    )
    return gone


def old_events(tx: Transaction, bounds: Bounds, after: int) -> Page:
    rows = tx.all(SQL.old_events, after=after, page=PAGE)
    old = [job for job, at in rows if moment(at) < bounds.events_before]
    return Page(old, rows[-1][0] if rows else after, len(rows) == PAGE and bool(old))


def retire_events(tx: Transaction, bounds: Bounds, jobs: Sequence[int], *, actor: str) -> int:
    """Delete all events of those of these jobs that are gone; never some of them."""
    ids = json.dumps(list(jobs))
    gone = len(tx.all(SQL.retire_events, jobs=ids, events_before=bounds.events_before))
    if gone:
        tell(tx, actor=actor, verb="retention.events", subject=f"{gone} events")
    return gone


def retire_audit(tx: Transaction, bounds: Bounds) -> int:
    return len(tx.all(SQL.retire_audit, bite=RETIRE_CHUNK, events_before=bounds.events_before))


def retire_alerts(tx: Transaction, bounds: Bounds, after: int) -> Page:
    """Of the next stretch of alerts those that were closed long ago; what is still open stays, and
    keeps none behind it."""
    seen = tx.all(SQL.next_alerts, after=after, bite=RETIRE_CHUNK)
    if not seen:
        return Page([], after, False)
    last, since = seen[-1]
    before = bounds.events_before
    old = tx.all(SQL.retire_alerts, into=int, after=after, last=last, events_before=before)
    # What was raised later cannot have been closed before.
    more = moment(since) < before
    return Page(old, last, more and len(seen) == RETIRE_CHUNK)


def retire_batches(tx: Transaction, bounds: Bounds, after: int, *, actor: str) -> Page:
    """Delete a bite of old batches that have no job any more, with their ledgers."""
    which = {"done_before": bounds.done_before, "after": after, "bite": RETIRE_CHUNK}
    old = tx.all(SQL.old_batches, into=int, **which)
    goes = _unreferred(tx, Refers.BATCH, old)
    if goes:
        tx.all(SQL.retire_batches, batches=json.dumps(goes))
        tell(tx, actor=actor, verb="retention.batches", subject=f"{len(goes)} batches")
    return Page(goes, old[-1] if old else after, len(old) == RETIRE_CHUNK)


def retire_own(tx: Transaction) -> int:
    """What the engine keeps for itself and nobody asks for any more."""
    at = now(tx)
    runners = tx.all(SQL.retire_runners, runners_before=at - RUNNERS, bite=RETIRE_CHUNK)
    tx.run(SQL.retire_runner_totals)
    pace = tx.all(SQL.retire_pace, pace_before=at - PACE)
    ticks = tx.all(SQL.retire_ticks, ticks_before=at - TICKS)
    costs = tx.all(SQL.retire_costs, costs_before=f"{at - COSTS:%Y-%m-%d}")
    return len(runners) + len(pace) + len(ticks) + len(costs)


def _unreferred(tx: Transaction, what: Refers, ids: list[int]) -> list[int]:
    named: set[int] = set()
    for each in list_references(tx):
        if each.what is what and ids:
            named |= {*tx.all(_naming(each), into=int, ids=json.dumps(ids))}
    return [id_ for id_ in ids if id_ not in named]


def _naming(reference: Reference) -> Statement:
    """Which of some ids a column names. Table and column are only letters: they were checked."""
    column = reference.column
    sets = ("json_each(:ids) AS i", "json_array_elements_text(CAST(:ids AS json)) AS i(value)")
    ask = f"SELECT DISTINCT {column} FROM {reference.table} WHERE {column} IN "  # noqa: S608
    return adhoc(*(ask + f"(SELECT CAST(i.value AS bigint) FROM {each})" for each in sets))  # noqa: S608
