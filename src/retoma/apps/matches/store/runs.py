"""Runs: a round that is scraped, from the first look at its page until every match of it is stored.

Of a round one run is the current one; a start finds it while anything of it is open (R5). What somebody
looks for later only adds to it.
"""

import json
from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from retoma import db
from retoma.apps.matches.model import (
    COMPLETE,
    DISCOVERY,
    MATCH,
    Problem,
    SchemaInvalid,
    TaskStatus,
)
from retoma.apps.matches.schemas import MatchRef
from retoma.apps.matches.sites import sites
from retoma.apps.matches.store import games
from retoma.apps.matches.store.rows import SQL, Round
from retoma.db import Call, Json, Row
from retoma.db.rows import microseconds
from retoma.engine import store as engine
from retoma.engine.rules.errors import NotFound
from retoma.engine.run.transaction import Transaction
from retoma.words import say, stored

# What an alert of pages that were refused is called, by their code.
ALERTS: Final = {
    "LAYOUT_CHANGED": "LayoutChanged",
    "SCHEMA_INVALID": "SchemaInvalid",
    "ROUND_SHORT": "RoundShort",
}
MOST_AGAIN: Final = 5_000  # jobs that one call tries again
MOST_FIELDS: Final = 100  # of pages that were refused, in alerts
CLOSED: Final = frozenset({TaskStatus.FAILED, TaskStatus.SKIPPED})


@dataclass(frozen=True, slots=True)
class Look:
    """The payload of a discovery: for which run, and how many were before it."""

    run: int
    look: int = 1


@dataclass(frozen=True, slots=True)
class Ask:
    """The payload of a match's job: its task; whose that is and of which match is for the log."""

    task: int
    run: int
    match: str


@dataclass(frozen=True, slots=True)
class Complete:
    """The payload of a notice: every match of this round is stored."""

    run: int
    league: str
    season: int
    round: int
    matches: int
    time: int = 1  # it may lose a match again, by a person, and have it back


@dataclass(frozen=True, slots=True)
class Run:
    """What a story is told of its run."""

    id: int
    of: Round
    looks: int
    discovery: int | None
    expected: int | None
    correlation: str | None = None


@dataclass(frozen=True, slots=True)
class Scrape:
    """A row of the document's `scrape_jobs`: a round that is scraped, and how many matches stand how."""

    id: int
    league: str
    season: int
    round: int
    status: TaskStatus
    expected: int | None
    stored: int
    pending: int
    running: int
    not_yet: int
    failed: int
    left_out: int
    dropped: int
    listed: int
    complete: bool
    discovery_state: str
    error_code: str | None  # of its discovery
    error: Json
    snapshot: str | None
    batch: int | None
    discovery: int | None
    created_by: str
    created_at: datetime | None
    completed_at: datetime | None
    ended_at: datetime | None  # a later one has taken its place

    @property
    def of(self) -> Round:
        return Round(self.league, self.season, self.round)

    @property
    def unlisted(self) -> int:
        """Matches that the round has and no page has named."""
        return max(0, (self.expected or 0) - self.listed)


@dataclass(frozen=True, slots=True)
class Tried:
    """What a call has set going: jobs that are tried again, or the run they belong to."""

    run: int
    new: bool
    again: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()


# — begun —


def start(
    tx: Transaction, of: Round, *, actor: str, correlation: str | None = None
) -> tuple[int, bool]:
    """The run of a round, and whether this call has begun it; whoever comes second finds it (R5)."""
    found = _held(tx, of)
    if found is not None:
        run, is_open = found
        if is_open:
            return run, False
        tx.run(SQL.end_run, run=run)
    made = tx.one(
        SQL.add_run, into=int, **of.parameters(), actor=actor, correlation=correlation
    )
    if made is None:  # somebody was quicker by a moment
        [run] = tx.all(SQL.last_run, into=int, **of.parameters())
        return run, False
    run = made
    _look(tx, Look(run), actor, correlation)
    tx.tell("matches.started", f"scrape {run}", of.parameters(), actor=actor)
    return run, True


def _held(tx: Transaction, of: Round) -> tuple[int, bool] | None:
    """The current run of a round, and whether something of it is open.

    Until the end of this transaction nobody else ends it, or tries anything of it again.
    """
    while (found := current_run(tx, of)) is not None:
        if tx.one(SQL.hold_run, run=found) is not None:
            [(run, is_open)] = tx.all(SQL.last_run, **of.parameters())
            return int(run), bool(is_open)
    return None


def _look(tx: Transaction, look: Look, actor: str, correlation: str | None) -> None:
    job = tx.submit(
        DISCOVERY,
        look,
        key=f"{look.run}.{look.look}",
        actor=actor,
        correlation=correlation,
    )
    tx.run(SQL.name_discovery, run=look.run, job=job.id, looks=look.look)


def discovered(tx: Transaction, run: int, found: Sequence[MatchRef]) -> int:
    """All its tasks and how many there are, together (H-40); those that it had stay. How many are new.

    SchemaInvalid where a team would play twice: nothing of the page is taken then."""
    tx.run(SQL.lock_run, run=run)
    wanted = run_of(tx, run)
    _check_pairs(tx, wanted, found)
    rows = [
        {
            "match_key": each.key,
            "home": each.home,
            "away": each.away,
            "url": each.url,
            "kickoff": None if each.kickoff is None else each.kickoff.isoformat(),
            "micros": None if each.kickoff is None else microseconds(each.kickoff),
        }
        for each in found
    ]
    listed = tx.all(SQL.add_tasks, run=run, rows=json.dumps(rows))
    new = sorted((task, key) for task, key, job in listed if job is None)
    new += sorted(tx.all(SQL.add_known_tasks, run=run))
    batch = None
    if new:
        of = wanted.of
        games.put_teams(
            tx, of.league, (team for each in found for team in (each.home, each.away))
        )
        asks = [Ask(int(task), run, key) for task, key in new]
        batch = tx.submit_many(MATCH, asks, name=str(of), correlation=wanted.correlation).id
        tx.run(SQL.name_tasks, batch=batch)
    tx.run(SQL.expect_tasks, run=run, batch=batch, size=size_of(tx, wanted.of) or 0)
    complete(tx, {run}, [])
    return len(new)


def _check_pairs(tx: Transaction, run: Run, found: Sequence[MatchRef]) -> None:
    """A team plays once in a round, also in what other pages have said of it before."""
    dropped = {*tx.all(SQL.dropped_keys, into=str, **run.of.parameters())}
    playing = {
        team: key
        for key, home, away in tx.all(SQL.known_pairs, run=run.id)
        for team in (home, away)
    }
    flaws = [
        Problem(f"matches[{place}].{side}", f"plays in {playing[team]} of this round already")
        for place, each in enumerate(found)
        if each.key not in dropped
        for side, team in (("home", each.home), ("away", each.away))
        if playing.get(team, each.key) != each.key
    ]
    if flaws:
        raise SchemaInvalid(problems=flaws)


def size_of(tx: db.Transaction, of: Round) -> int | None:
    """How many matches the round has, whatever its page says: by a person, else by its league."""
    confirmed = tx.one(SQL.confirmed_size, into=int, **of.parameters())
    if confirmed is not None:
        return confirmed
    known = sites().get(of.league)
    return None if known is None else known.league.matches


def shortfall(tx: db.Transaction, run: int, found: Sequence[MatchRef]) -> Problem | None:
    """What is wrong where the round has more matches than this page and those before it have named."""
    wanted = run_of(tx, run)
    dropped = {*tx.all(SQL.dropped_keys, into=str, **wanted.of.parameters())}
    known = {*tx.all(SQL.known_pairs, into=str, run=run)}
    listed = len(known | {each.key for each in found} - dropped)
    size = size_of(tx, wanted.of)
    if size is None or listed >= size:
        return None
    return Problem("matches", f"this round has {size} matches, known so far: {listed}")


def note(
    tx: Transaction, run: int, not_yet: str | None, error: str | None, snapshot: str | None
) -> None:
    """What the last look came to."""
    tx.run(SQL.note_run, run=run, not_yet=not_yet, error=error, snapshot=snapshot)


def complete(tx: Transaction, runs: Set[int], first: Sequence[Call]) -> list[list[Row]]:
    """After these, all at once, what they answer: whoever stores the last match of a run says so to all (R3)."""
    which = {"runs": json.dumps(sorted(runs))}
    calls = [*first, Call(SQL.lock_runs, which), Call(SQL.complete_runs, which)]
    *answers, _, completed = tx.together(calls)
    for run, league, season, round_, matches, time in completed:
        told = Complete(run, league, season, round_, matches, time)
        key = f"{run}.{matches}" if time == 1 else f"{run}.{matches}.{time}"
        tx.submit(COMPLETE, told, key=key, correlation=run_of(tx, run).correlation)
    return answers


# — tried again —


def retry_failed(
    tx: Transaction,
    *,
    run: int | None = None,
    league: str | None = None,
    season: int | None = None,
    round_: int | None = None,
    actor: str,
) -> list[int]:
    """The next generation of what is dead, of current runs alone; asked twice it is one (H-46)."""
    which = {"run": run, "league": league, "season": season, "round": round_}
    runs = {int(run) for run, _ in tx.all(SQL.find_failed, **which, n=MOST_AGAIN)}
    held = {each for each in sorted(runs) if tx.one(SQL.hold_run, run=each) is not None}
    rows = tx.all(SQL.find_failed, **which, n=MOST_AGAIN)
    return _again(tx, [int(job) for run, job in rows if int(run) in held], actor)


def _again(tx: Transaction, jobs: Sequence[int], actor: str) -> list[int]:
    """Those of them that have ended; whoever was moved meanwhile is left as it is."""
    command = engine.Command(verb=engine.Verb.RETRY, actor=actor, since=engine.now(tx))
    left = {each.job for each in engine.order_jobs(tx, command, jobs, 0).left}
    return sorted(set(jobs) - left)


def retry_missing(tx: Transaction, of: Round, *, actor: str) -> Tried:
    """What is not among the matches is tried again, and the round's page is looked at once more."""
    found = _held(tx, of)
    if found is None:
        run, new = start(tx, of, actor=actor)
        return Tried(run, new)
    run, _ = found
    rows = tx.all(SQL.find_missing, run=run)
    closed = [int(job) for _, status, job in rows if TaskStatus(status) in CLOSED]
    again = tuple(_again(tx, closed, actor))
    missing = tuple(key for key, _, _ in rows)
    return Tried(run, _looked_again(tx, run, actor), again, missing)


def _looked_again(tx: Transaction, run: int, actor: str) -> bool:
    """Once more, unless somebody is about to."""
    seen = run_of(tx, run)
    if job_seen(tx, run).discovery_state in ("waiting", "running", "parked"):
        return False
    _look(tx, Look(run, seen.looks + 1), actor, seen.correlation)
    return True


# — seen —


def run_of(tx: db.Transaction, run: int) -> Run:
    found = tx.one(SQL.get_run, into=Run, run=run)
    if found is None:
        raise _unknown(run)
    return found


def job_seen(tx: db.Transaction, run: int) -> Scrape:
    """One run, by the document's names."""
    found = tx.one(SQL.show_job, into=Scrape, run=run)
    if found is None:
        raise _unknown(run)
    return found


def round_seen(tx: db.Transaction, of: Round) -> Scrape:
    """The current run of a round: whoever waits for it asks whether it is complete."""
    run = current_run(tx, of)
    if run is None:
        raise NotFound(say("{round} has not been scraped yet", round=of.said))
    return job_seen(tx, run)


def current_run(tx: db.Transaction, of: Round) -> int | None:
    """None: nobody has scraped the round."""
    return tx.one(SQL.last_run, into=int, **of.parameters())


def missing(tx: db.Transaction, run: int) -> list[str]:
    """Matches of it that are not stored."""
    return tx.all(SQL.find_missing, into=str, run=run)


def list_jobs(
    tx: db.Transaction,
    *,
    before: int | None,
    n: int,
    league: str | None = None,
    season: int | None = None,
    round_: int | None = None,
) -> list[Scrape]:
    how = {"before": before, "league": league, "season": season, "round": round_}
    return [job_seen(tx, run) for run in tx.all(SQL.list_runs, into=int, **how, n=n)]


def watch(tx: db.Transaction) -> dict[str, dict[str, Any]]:
    """What somebody should know of: pages that are refused, by site and field."""
    names = ALERTS
    return {
        f"{names[code]} {league} {field}"[:200]: {
            **stored(
                say(
                    "pages of {league} that were refused by {code} at {field}: {n}",
                    n=int(n),
                    league=league,
                    code=code,
                    field=field or "?",
                )
            ),
            "pages": int(n),
            "first": int(first),
        }
        for league, code, field, n, first in tx.all(SQL.refused_fields, n=MOST_FIELDS)
    }


def _unknown(run: int) -> NotFound:
    return NotFound(say("there is no scrape {run}", run=run))
