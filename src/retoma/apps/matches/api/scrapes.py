"""Scrapes of rounds: begun once, looked at, tried again; and the gate that says when a round may be used."""

from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import Path, Query, Response
from pydantic import Field, JsonValue

from retoma.apps.matches import store
from retoma.apps.matches.api.how import (
    LeagueName,
    Number,
    OfLeague,
    OfRound,
    OfSeason,
    ScrapeId,
    TaskId,
    Year,
    checked_round,
    checked_rounds,
    read,
    routes,
    times_told,
)
from retoma.apps.matches.model import TaskStatus
from retoma.apps.matches.store.rows import Round, time_of
from retoma.db import Transaction
from retoma.engine.run.transaction import Transaction as Writing
from retoma.web import AHouse, AVisit, House, Operator, Viewer
from retoma.web.cursor import Cursor
from retoma.web.replay import asked, written
from retoma.web.wire import Body, Id, Limit, NextPage, Once, PageOf, Shown


class NewScrape(Body):
    """A round, or those from `round` to `to_round`."""

    league: LeagueName
    season: Year
    round: Number
    to_round: Number | None = None

    def rounds(self) -> list[Round]:
        last = self.round if self.to_round is None else self.to_round
        return checked_rounds(self.league, self.season, self.round, last)


class WhichFailed(Body):
    """What is tried again: of one scrape, or of a league, a season, a round; nothing: all."""

    job_id: Id | None = None
    league: LeagueName | None = None
    season: Year | None = None
    round: Number | None = None


class WhichRound(Body):
    """One round."""

    league: LeagueName
    season: Year
    round: Number


class ScrapeShown(Shown):
    """A round that is scraped, as the document's `scrape_jobs` has it."""

    id: int
    league: str
    season: int
    round: int
    status: TaskStatus
    complete: bool = Field(description="Every match of the round is stored.")
    expected: int | None = Field(
        description="Matches that the round has: by its pages, its league or a person; null: nobody knows yet."
    )
    listed: int = Field(
        description="Matches that its pages have named, without what was dropped."
    )
    dropped: int = Field(description="Matches that never were, because a person says so.")
    stored: int
    pending: int
    running: int
    not_yet: int
    failed: int
    left_out: int = Field(description="Tasks that a person has skipped.")
    error_code: str | None = Field(description="What its discovery failed by.")
    error: JsonValue = None
    snapshot: str | None = Field(description="The SHA-256 of the page that was refused.")
    discovery: int | None = Field(description="The job that looks for its matches.")
    batch: int | None = Field(description="`/api/stream?batch=` tells what happens to it.")
    created_by: str
    created_at: datetime | None
    completed_at: datetime | None


class Begun(Shown):
    """A scrape, and whether this call has begun it."""

    scrape: ScrapeShown
    new: bool


class BegunShown(Shown):
    scrapes: list[Begun]


class TaskShown(Shown):
    """A match of a round, as the document's `scrape_tasks` has it."""

    id: int
    job_id: int
    league: str
    season: int
    round: int
    match_key: str
    home: str
    away: str
    url: str
    kickoff: datetime | None
    status: TaskStatus
    attempts: int
    error_code: str | None
    error: JsonValue = Field(description="Selector or path, status, headers, attempt.")
    snapshot: str | None = Field(description="The SHA-256 of the page that was refused.")
    not_yet: str | None = Field(description="Why it is not stored yet.")
    look_again_at: datetime | None
    partida_id: int | None
    job: int | None
    created_at: datetime | None
    dropped: str | None = Field(description="Why a person says that this match never was.")


class RetriedShown(Shown):
    """Jobs that are tried again."""

    jobs: list[int]


class MissingShown(Shown):
    """What is not stored of a round, and what was set going."""

    scrape: ScrapeShown
    looked_again: bool = Field(description="Whether this call has its page looked at again.")
    missing: list[str]
    jobs: list[int] = Field(description="Those of them that are tried again.")


class RoundShown(Shown):
    """The publish gate of a round."""

    league: str
    season: int
    round: int
    complete: bool
    expected: int | None
    stored: int
    missing: list[str]
    unlisted: int = Field(description="Matches that the round has and no page has named.")
    completed_at: datetime | None
    scrape: int


class _Runs(Body):
    runs: list[tuple[int, bool]]


@routes.post("/api/scrape", status_code=201, responses={200: {"model": BegunShown}})
async def start_scrape(
    body: NewScrape,
    who: Operator,
    house: AHouse,
    visit: AVisit,
    response: Response,
    key: Once = None,
) -> BegunShown:
    """A round that is being scraped already is not begun twice: its scrape is shown, with 200.

    `X-Correlation-Id` goes with all its jobs, their log lines and their notice."""
    wanted = body.rounds()

    def start(tx: Writing) -> list[tuple[int, bool]]:
        return [
            store.runs.start(tx, each, actor=who.name, correlation=visit.correlation)
            for each in wanted
        ]

    made, fresh = await written(
        house,
        asked(key, who, "start_scrape", body),
        start,
        lambda runs: _Runs(runs=runs),
        _Runs,
    )
    shown = [
        Begun(scrape=await scrape_of(house, run), new=new and fresh) for run, new in made.runs
    ]
    response.status_code = 201 if any(each.new for each in shown) else 200
    return BegunShown(scrapes=shown)


@routes.post("/api/scrape/retry-failed")
async def retry_failed(body: WhichFailed, who: Operator, house: AHouse) -> RetriedShown:
    """Only what has failed, as a new generation of three attempts; asked twice it is one."""
    jobs = await house.retoma.write(
        lambda tx: store.runs.retry_failed(
            tx,
            run=body.job_id,
            league=body.league,
            season=body.season,
            round_=body.round,
            actor=who.name,
        )
    )
    return RetriedShown(jobs=jobs)


@routes.post("/api/scrape/jobs/{scrape}/hurry")
async def hurry_scrape(scrape: ScrapeId, who: Operator, house: AHouse) -> RetriedShown:
    """What waits for a time (NOT_YET, or the next attempt) is looked at now, all of a scrape."""
    jobs = await house.retoma.write(
        lambda tx: store.repairs.hurry_round(tx, scrape, actor=who.name)
    )
    return RetriedShown(jobs=jobs)


@routes.post("/api/scrape/tasks/{task}/hurry")
async def hurry_task(task: TaskId, who: Operator, house: AHouse) -> TaskShown:
    """The same of one task; 409 where it does not wait for a time."""
    await house.retoma.write(lambda tx: store.repairs.hurry(tx, task, actor=who.name))
    return task_told(await read(house, partial(store.tasks.task_seen, task=task)))


@routes.post("/api/scrape/retry-missing")
async def retry_missing(body: WhichRound, who: Operator, house: AHouse) -> MissingShown:
    """What is not among the matches of a round is tried again, and its page looked at once more."""
    of = checked_round(body.league, body.season, body.round)
    tried = await house.retoma.write(
        lambda tx: store.runs.retry_missing(tx, of, actor=who.name)
    )
    return MissingShown(
        scrape=await scrape_of(house, tried.run),
        looked_again=tried.new,
        missing=list(tried.missing),
        jobs=list(tried.again),
    )


# — seen —


@routes.get("/api/scrape/jobs")
async def list_scrapes(
    _: Viewer,
    house: AHouse,
    league: OfLeague = None,
    season: OfSeason = None,
    round: OfRound = None,  # noqa: A002 — the document's word
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[ScrapeShown]:
    """Scrapes, the newest first."""
    stamp = Cursor("scrapes", f"{league} {season} {round}")
    [before] = stamp.read(cursor, int) or [None]
    how: dict[str, Any] = {"league": league, "season": season, "round_": round}
    found = await read(house, partial(store.runs.list_jobs, before=before, n=limit + 1, **how))
    shown = [scrape_told(each) for each in found[:limit]]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(found) > limit else None))


@routes.get("/api/scrape/jobs/{scrape}")
async def get_scrape(scrape: ScrapeId, _: Viewer, house: AHouse) -> ScrapeShown:
    """How a round stands: every match of it is counted once."""
    return await scrape_of(house, scrape)


@routes.get("/api/scrape/jobs/{scrape}/tasks")
async def list_tasks(
    scrape: ScrapeId,
    _: Viewer,
    house: AHouse,
    status: Annotated[TaskStatus | None, Query(description="Only in this status.")] = None,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[TaskShown]:
    """Its matches: PENDING, RUNNING, DONE, FAILED, SKIPPED (it was stored before), NOT_YET."""
    stamp = Cursor("scrape_tasks", f"{scrape} {status}")
    [after] = stamp.read(cursor, int) or [0]

    def page(tx: Transaction) -> list[dict[str, Any]]:
        store.runs.run_of(tx, scrape)
        return store.tasks.list_tasks(tx, scrape, after=after, n=limit + 1, status=status)

    found = await read(house, page)
    shown = [task_told(each) for each in found[:limit]]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(found) > limit else None))


@routes.get("/api/scrape/tasks/{task}")
async def get_task(task: TaskId, _: Viewer, house: AHouse) -> TaskShown:
    """One match of a round: stored, or what it failed by."""
    return task_told(await read(house, partial(store.tasks.task_seen, task=task)))


@routes.get("/api/rounds/{league}/{season}/{round}")
async def get_round(
    league: Annotated[str, Path(max_length=100, description="The key of a league.")],
    season: Annotated[int, Path(ge=1, le=9_999, description="The year of a season.")],
    round: Annotated[int, Path(ge=1, le=1_000, description="The number of a round.")],  # noqa: A002
    _: Viewer,
    house: AHouse,
) -> RoundShown:
    """The publish gate: `complete` only when every match that the round has is stored."""
    return await round_told(house, checked_round(league, season, round))


async def round_told(house: House, of: Round) -> RoundShown:
    def look(tx: Transaction) -> tuple[dict[str, Any], list[str]]:
        seen = store.runs.round_seen(tx, of)
        return seen, store.runs.missing(tx, seen["id"])

    told, missing = await read(house, look)
    return RoundShown(
        league=of.league,
        season=of.season,
        round=of.round,
        complete=told["complete"],
        expected=told["expected"],
        stored=told["stored"],
        missing=missing,
        unlisted=max(0, (told["expected"] or 0) - told["listed"]),
        scrape=told["id"],
        completed_at=time_of(told["completed_at"]),
    )


async def scrape_of(house: House, run: int) -> ScrapeShown:
    return scrape_told(await read(house, partial(store.runs.job_seen, run=run)))


def scrape_told(told: dict[str, Any]) -> ScrapeShown:
    names = ScrapeShown.model_fields
    shown = {name: value for name, value in told.items() if name in names}
    times = times_told(told, "created_at", "completed_at")
    return ScrapeShown(**{**shown, **times, "error_code": told["discovery_code"]})


def task_told(told: dict[str, Any]) -> TaskShown:
    times = times_told(told, "kickoff", "look_again_at", "created_at")
    return TaskShown(**{**told, **times})
