"""Scrapes of rounds: begun once, looked at, tried again; and the gate that says when a round may be used."""

from functools import partial
from typing import Annotated, Any

from fastapi import Query, Response

from retoma.apps.matches import service
from retoma.apps.matches.api.wire import (
    Begun,
    BegunShown,
    LeagueAt,
    MissingShown,
    OfLeague,
    OfRound,
    OfSeason,
    RetriedShown,
    RoundAt,
    RoundShown,
    ScrapeShown,
    SeasonAt,
    TaskShown,
    WhichFailed,
    WhichRound,
    routes,
)
from retoma.apps.matches.inputs import NewScrape, ScrapeId, TaskId
from retoma.apps.matches.model import TaskStatus
from retoma.apps.matches.store.rows import Round
from retoma.web import AHouse, AVisit, House, Operator, Viewer
from retoma.web.cursor import Cursor
from retoma.web.replay import asked, written
from retoma.web.wire import Body, Limit, NextPage, Once, PageOf


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
    made, fresh = await written(
        house,
        asked(key, who, "start_scrape", body),
        partial(
            service.scrapes.start_rounds,
            rounds=body.rounds(),
            actor=who.name,
            correlation=visit.correlation,
        ),
        lambda runs: _Runs(runs=runs),
        _Runs,
    )
    shown = [
        Begun(scrape=await _shown(house, run), new=new and fresh) for run, new in made.runs
    ]
    response.status_code = 201 if any(each.new for each in shown) else 200
    return BegunShown(scrapes=shown)


@routes.post("/api/scrape/retry-failed")
async def retry_failed(body: WhichFailed, who: Operator, house: AHouse) -> RetriedShown:
    """Only what has failed, as a new generation of three attempts; asked twice it is one."""
    jobs = await service.scrapes.retry_failed(
        house.retoma,
        run=body.job_id,
        league=body.league,
        season=body.season,
        round_=body.round,
        actor=who.name,
    )
    return RetriedShown(jobs=jobs)


@routes.post("/api/scrape/jobs/{scrape}/hurry")
async def hurry_scrape(scrape: ScrapeId, who: Operator, house: AHouse) -> RetriedShown:
    """What waits for a time (NOT_YET, or the next attempt) is looked at now, all of a scrape."""
    return RetriedShown(
        jobs=await service.scrapes.hurry_scrape(house.retoma, scrape, actor=who.name)
    )


@routes.post("/api/scrape/tasks/{task}/hurry")
async def hurry_task(task: TaskId, who: Operator, house: AHouse) -> TaskShown:
    """The same of one task; 409 where it does not wait for a time."""
    found = await service.scrapes.hurry_task(house.retoma, task, actor=who.name)
    return TaskShown.model_validate(found)


@routes.post("/api/scrape/retry-missing")
async def retry_missing(body: WhichRound, who: Operator, house: AHouse) -> MissingShown:
    """What is not among the matches of a round is tried again, and its page looked at once more."""
    of = Round(body.league, body.season, body.round)
    missing = await service.scrapes.retry_missing(house.retoma, of, actor=who.name)
    return MissingShown.model_validate(missing)


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
    found = await service.scrapes.list_scrapes(
        house.retoma, before=before, limit=limit + 1, **how
    )
    shown = [ScrapeShown.model_validate(each) for each in found[:limit]]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(found) > limit else None))


@routes.get("/api/scrape/jobs/{scrape}")
async def get_scrape(scrape: ScrapeId, _: Viewer, house: AHouse) -> ScrapeShown:
    """How a round stands: every match of it is counted once."""
    return await _shown(house, scrape)


async def _shown(house: House, run: int) -> ScrapeShown:
    return ScrapeShown.model_validate(await service.scrapes.get_scrape(house.retoma, run))


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
    found = await service.scrapes.list_tasks(
        house.retoma, scrape, after=after, limit=limit + 1, status=status
    )
    shown = [TaskShown.model_validate(each) for each in found[:limit]]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(found) > limit else None))


@routes.get("/api/scrape/tasks/{task}")
async def get_task(task: TaskId, _: Viewer, house: AHouse) -> TaskShown:
    """One match of a round: stored, or what it failed by."""
    return TaskShown.model_validate(await service.scrapes.get_task(house.retoma, task))


@routes.get("/api/rounds/{league}/{season}/{round}")
async def get_round(
    league: LeagueAt,
    season: SeasonAt,
    round: RoundAt,  # noqa: A002
    _: Viewer,
    house: AHouse,
) -> RoundShown:
    """The publish gate: `complete` only when every match that the round has is stored."""
    of = Round(league, season, round)
    return RoundShown.model_validate(await service.scrapes.get_gate(house.retoma, of))
