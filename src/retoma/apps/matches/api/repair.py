"""The document's interface of repairs: pages that were refused, seen, read again, accepted with a reason."""

from typing import Final

from fastapi import Response
from pydantic import Field, JsonValue

from retoma.apps.matches import service
from retoma.apps.matches.api.wire import (
    LeagueAt,
    MatchShown,
    RoundAt,
    RoundShown,
    SeasonAt,
    TaskShown,
    routes,
)
from retoma.apps.matches.inputs import (
    Accepted,
    Corrected,
    Deleted,
    MatchId,
    Reason,
    ReplayAsked,
    SizeConfirmed,
    TaskId,
)
from retoma.apps.matches.service.replays import FIRST, Place, Replay
from retoma.apps.matches.store.rows import Round
from retoma.engine.rules.errors import NotFound
from retoma.web import AHouse, Operator
from retoma.web.cursor import Cursor
from retoma.web.files import TEXT_FILE, text_file
from retoma.web.wire import Shown
from retoma.words import say

MOST: Final = 200  # pages that are read in one request


class RereadShown(Shown):
    """What a kept page comes to now."""

    what: str = Field(description="`task` or `round`.")
    id: int
    round: str
    key: str
    before: JsonValue = Field(description="What it was refused for.")
    change: str = Field(
        description="`stored`, `discovered`, `not_yet`, `refused`, `lost` or `moved`."
    )
    after: JsonValue
    promoted: bool


class ReplayShown(Shown):
    """Some of them; the next are asked for with `next` as the cursor."""

    pages: list[RereadShown]
    readable: int
    promoted: int
    next: str | None


class CorrectedShown(Shown):
    match: MatchShown
    changed: list[str] = Field(
        description="What is told otherwise than before; nothing: all is the same."
    )


class DeletedShown(Shown):
    """Scrapes that lack the match now."""

    jobs: list[int]


class RefreshShown(Shown):
    """The job that asks for the page."""

    job: int


@routes.post("/api/scrape/replay")
async def replay(body: ReplayAsked, who: Operator, house: AHouse) -> ReplayShown:
    """Dead letters' pages are read again as they were kept, 200 at a time: no request is made for them."""
    which = body.which()
    stamp = Cursor("replay", str(which))
    after = Place(*(stamp.read(body.cursor, str, int) or FIRST))
    reread, following = await Replay(house.retoma, house.settings.matches_url).bite(
        which, after, MOST, apply=body.apply, actor=who.name
    )
    return ReplayShown(
        pages=[RereadShown.model_validate(each) for each in reread],
        readable=sum(each.readable for each in reread),
        promoted=sum(each.promoted for each in reread),
        next=stamp.write(*(following or [None])),
    )


@routes.get("/api/scrape/tasks/{task}/snapshot", response_class=Response, responses=TEXT_FILE)
async def get_snapshot(task: TaskId, _: Operator, house: AHouse) -> Response:
    """The page that was refused, as plain text to be saved: never shown as what it is (H-44)."""
    found = await service.scrapes.get_task(house.retoma, task)
    if found.snapshot is None:
        raise NotFound(say("no page of task {task} was kept", task=task))
    page = await house.retoma.evidence.read(found.snapshot)
    return text_file(f"task-{task}.txt", page)


@routes.post("/api/scrape/tasks/{task}/accept")
async def accept(task: TaskId, body: Accepted, who: Operator, house: AHouse) -> TaskShown:
    """A match as a person says it is, by the same strict rules; who and why is in the audit."""
    done = await service.repairs.accept_match(
        house.retoma, task, body.page(), body.why, actor=who.name
    )
    return TaskShown.model_validate(done)


@routes.post("/api/matches/{match}/correct")
async def correct(
    match: MatchId, body: Corrected, who: Operator, house: AHouse
) -> CorrectedShown:
    """A stored match put right, whole, by the same strict rules; who, why and what it was is in the audit."""
    corrected = await service.repairs.correct_match(
        house.retoma, match, body.page(), body.why, actor=who.name, revision=body.revision
    )
    return CorrectedShown.model_validate(corrected)


@routes.post("/api/matches/{match}/delete")
async def delete(match: MatchId, body: Deleted, who: Operator, house: AHouse) -> DeletedShown:
    """A match is stored no longer: its round is not complete, until `retry-failed` has brought it back."""
    jobs = await service.repairs.delete_match(
        house.retoma, match, body.why, actor=who.name, revision=body.revision
    )
    return DeletedShown(jobs=jobs)


@routes.post("/api/matches/{match}/refresh", status_code=202)
async def refresh(match: MatchId, body: Reason, who: Operator, house: AHouse) -> RefreshShown:
    """Its site is asked for it again; what is stored stays until the page was read and is its page."""
    job = await service.repairs.refresh_match(house.retoma, match, body.why, actor=who.name)
    return RefreshShown(job=job)


@routes.post("/api/scrape/tasks/{task}/drop")
async def drop(task: TaskId, body: Reason, who: Operator, house: AHouse) -> TaskShown:
    """A match that never was: its round expects it no longer, also in later scrapes."""
    done = await service.repairs.drop_match(house.retoma, task, body.why, actor=who.name)
    return TaskShown.model_validate(done)


@routes.post("/api/scrape/tasks/{task}/restore")
async def restore(task: TaskId, who: Operator, house: AHouse) -> TaskShown:
    """A match that was dropped is one of its round after all."""
    done = await service.repairs.restore_match(house.retoma, task, actor=who.name)
    return TaskShown.model_validate(done)


@routes.post("/api/rounds/{league}/{season}/{round}/size")
async def confirm_size(
    league: LeagueAt,
    season: SeasonAt,
    round: RoundAt,  # noqa: A002
    body: SizeConfirmed,
    who: Operator,
    house: AHouse,
) -> RoundShown:
    """How many matches a round has, where its league does not know: a person says so, and why."""
    of = Round(league, season, round)
    await service.repairs.confirm_size(house.retoma, of, body.matches, body.why, actor=who.name)
    return RoundShown.model_validate(await service.scrapes.get_gate(house.retoma, of))
