"""Scrapes of rounds: started, read, retried; and the gate that says when a round may be published."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from retoma import db
from retoma.apps.matches import store
from retoma.apps.matches.model import TaskStatus
from retoma.apps.matches.sites import site_of
from retoma.apps.matches.store.rows import Round
from retoma.apps.matches.store.runs import Scrape
from retoma.apps.matches.store.tasks import ScrapeTask
from retoma.engine.rules.errors import BadInput, IllegalMove
from retoma.engine.run.transaction import Transaction
from retoma.library import Retoma
from retoma.words import say

MOST_ROUNDS: Final = 100  # that one call starts


@dataclass(frozen=True, slots=True)
class Missing:
    """The matches of a round that are not stored, and the jobs that a call has retried for them."""

    scrape: Scrape
    looked_again: bool
    missing: Sequence[str]
    jobs: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Whether a round may be published: `complete` only when every match that the round has is stored."""

    league: str
    season: int
    round: int
    complete: bool
    expected: int | None
    stored: int
    missing: Sequence[str]
    unlisted: int
    completed_at: datetime | None
    scrape: int


def check_round(of: Round) -> Round:
    """Return the round; raise BadInput or NotFound where its league has no such round."""
    site_of(of.league).round_url(of.season, of.round)
    return of


def check_rounds(league: str, season: int, first: int, last: int | None) -> list[Round]:
    """Return the rounds of a range, each checked; `last` None: the first alone."""
    end = first if last is None else last
    if not first <= end < first + MOST_ROUNDS:
        raise BadInput(
            say("a range of rounds goes up, and has {most} at most", most=MOST_ROUNDS)
        )
    return [check_round(Round(league, season, each)) for each in range(first, end + 1)]


def start_rounds(
    tx: Transaction, rounds: Sequence[Round], *, actor: str, correlation: str | None = None
) -> list[tuple[int, bool]]:
    """Start a scrape of each round: its id, and whether this call started it.

    The caller brings the transaction, so that the API can keep its answer in the same one."""
    return [store.runs.start(tx, each, actor=actor, correlation=correlation) for each in rounds]


async def retry_failed(
    retoma: Retoma,
    *,
    actor: str,
    run: int | None = None,
    league: str | None = None,
    season: int | None = None,
    round_: int | None = None,
) -> list[int]:
    """Retry only what has failed, as a new generation of three attempts: its jobs."""
    how = partial(store.runs.retry_failed, run=run, league=league, season=season, round_=round_)
    return await retoma.write(lambda tx: how(tx, actor=actor))


async def retry_missing(retoma: Retoma, of: Round, *, actor: str) -> Missing:
    """Retry each match of a round that is not stored, and read the page of the round again."""
    check_round(of)

    def retry(tx: Transaction) -> Missing:
        tried = store.runs.retry_missing(tx, of, actor=actor)
        scrape = store.runs.job_seen(tx, tried.run)
        return Missing(scrape, tried.new, tried.missing, tried.again)

    return await retoma.write(retry)


async def retry_task(retoma: Retoma, task: int, *, actor: str) -> None:
    """Retry one match that failed or was left out, as a new generation of three attempts."""
    found = await get_task(retoma, task)
    if found.job is None or not found.retriable:
        raise IllegalMove(
            say(
                "task {task} is {status}: only one that failed or was left out is tried again",
                task=task,
                status=found.status,
            )
        )
    await retoma.retry(found.job, actor=actor)


async def hurry_scrape(retoma: Retoma, run: int, *, actor: str) -> list[int]:
    """Run every job of a scrape that waits for a time (NOT_YET, or its next attempt) now."""
    return await retoma.write(lambda tx: store.repairs.hurry_round(tx, run, actor=actor))


async def hurry_task(retoma: Retoma, task: int, *, actor: str) -> ScrapeTask:
    """Run the job of one task now; IllegalMove where it does not wait for a time."""
    return await retoma.write(lambda tx: store.repairs.hurry(tx, task, actor=actor))


async def list_scrapes(
    retoma: Retoma,
    *,
    limit: int,
    before: int | None = None,
    league: str | None = None,
    season: int | None = None,
    round_: int | None = None,
) -> list[Scrape]:
    """Scrapes, the newest first; `before`: only those with a smaller id."""
    how: dict[str, Any] = {"league": league, "season": season, "round_": round_}
    database = await retoma.database()
    return await database.read(
        lambda tx: store.runs.list_jobs(tx, before=before, n=limit, **how)
    )


async def get_scrape(retoma: Retoma, run: int) -> Scrape:
    database = await retoma.database()
    return await database.read(lambda tx: store.runs.job_seen(tx, run))


async def list_tasks(
    retoma: Retoma, run: int, *, limit: int, after: int = 0, status: TaskStatus | None = None
) -> list[ScrapeTask]:
    """Matches of a scrape in the order in which they were found; NotFound where there is no such scrape."""

    def read(tx: db.Transaction) -> list[ScrapeTask]:
        store.runs.run_of(tx, run)
        return store.tasks.list_tasks(tx, run, after=after, n=limit, status=status)

    return await (await retoma.database()).read(read)


async def get_task(retoma: Retoma, task: int) -> ScrapeTask:
    database = await retoma.database()
    return await database.read(lambda tx: store.tasks.task_seen(tx, task))


async def get_gate(retoma: Retoma, of: Round) -> Gate:
    check_round(of)

    def read(tx: db.Transaction) -> Gate:
        scrape = store.runs.round_seen(tx, of)
        return Gate(
            **of.parameters(),
            complete=scrape.complete,
            expected=scrape.expected,
            stored=scrape.stored,
            missing=store.runs.missing(tx, scrape.id),
            unlisted=scrape.unlisted,
            completed_at=scrape.completed_at,
            scrape=scrape.id,
        )

    return await (await retoma.database()).read(read)


async def find_current_scrape(retoma: Retoma, of: Round) -> int | None:
    """The id of the scrape that counts for a round; None: nobody has scraped it."""
    database = await retoma.database()
    return await database.read(lambda tx: store.runs.current_run(tx, of))
