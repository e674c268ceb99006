"""The document's interface of repairs: pages that were refused, seen, read again, accepted with a reason."""

from functools import partial
from typing import Annotated, Any, Final

from fastapi import Path, Response
from pydantic import Field, JsonValue, StrictBool, StrictInt, StrictStr

from retoma.apps.matches import store
from retoma.apps.matches.api.games import MatchShown, match_told
from retoma.apps.matches.api.how import (
    LeagueName,
    MatchId,
    TaskId,
    checked_round,
    read,
    routes,
)
from retoma.apps.matches.api.scrapes import RoundShown, TaskShown, round_told, task_told
from retoma.apps.matches.model import MatchStatus, SchemaInvalid
from retoma.apps.matches.replay import FIRST, Place, Replay, Reread, Which
from retoma.apps.matches.schemas import MOST_MATCHES, MatchPage, from_json
from retoma.apps.matches.words import in_words
from retoma.codec import encode
from retoma.engine.rules.errors import BadInput, NotFound
from retoma.web import AHouse, House, Operator
from retoma.web.cursor import Cursor
from retoma.web.files import TEXT_FILE, text_file
from retoma.web.problems import Flaw, Refusal
from retoma.web.wire import MARK, Body, CodeName, Id, Shown, Why
from retoma.words import say

Revision = Annotated[
    StrictInt, Field(ge=1, description="As `GET /api/matches/{match}` has shown it.")
]
MOST: Final = 200  # pages that are read in one request


class ReplayAsked(Body):
    """Which pages are read again, and by which parsers; `apply`: what can be read is stored."""

    code: CodeName | None = None
    league: LeagueName | None = None
    job_id: Id | None = None
    task_id: Id | None = None
    layouts: Annotated[StrictStr, Field(max_length=100, examples=["modern,classic"])] | None = (
        None
    )
    apply: StrictBool = False
    cursor: Annotated[StrictStr, Field(max_length=MARK)] | None = Field(
        None, description="`next` of the answer before; nothing: from the first page on."
    )

    def which(self) -> Which:
        return Which(
            code=self.code,
            league=self.league,
            run=self.job_id,
            task=self.task_id,
            layouts=self.layouts,
        )


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


class Accepted(Body):
    """A match as a person has put it right, and why."""

    match: dict[str, JsonValue]
    why: Why


class Corrected(Accepted):
    """A stored match as a person says it is, why, and which revision was seen."""

    revision: Revision


class Reason(Body):
    """Why; it is in the audit."""

    why: Why


class Deleted(Reason):
    """Why a match is stored no longer, and which revision was seen."""

    revision: Revision


class SizeConfirmed(Reason):
    """How many matches a round has, and why that is not what its league says."""

    matches: Annotated[StrictInt, Field(ge=1, le=MOST_MATCHES)]


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
    reread, following = await replay_of(house).bite(
        which, after, MOST, apply=body.apply, actor=who.name
    )
    return ReplayShown(
        pages=[_told(each) for each in reread],
        readable=sum(each.change in ("stored", "discovered") for each in reread),
        promoted=sum(each.promoted for each in reread),
        next=stamp.write(*(following or [None])),
    )


def replay_of(house: House) -> Replay:
    return Replay(house.retoma, house.settings.matches_url)


@routes.get("/api/scrape/tasks/{task}/snapshot", response_class=Response, responses=TEXT_FILE)
async def get_snapshot(task: TaskId, _: Operator, house: AHouse) -> Response:
    """The page that was refused, as plain text to be saved: never shown as what it is (H-44)."""
    told = await read(house, partial(store.tasks.task_seen, task=task))
    if told["snapshot"] is None:
        raise NotFound(say("no page of task {task} was kept", task=task))
    page = await house.retoma.evidence_bytes(told["snapshot"])
    return text_file(f"task-{task}.txt", page)


@routes.post("/api/scrape/tasks/{task}/accept")
async def accept(task: TaskId, body: Accepted, who: Operator, house: AHouse) -> TaskShown:
    """A match as a person says it is, by the same strict rules; who and why is in the audit."""
    page = _checked(body.match)
    await house.retoma.write(
        lambda tx: store.repairs.accept(tx, task, page, body.why, actor=who.name)
    )
    return task_told(await read(house, partial(store.tasks.task_seen, task=task)))


@routes.post("/api/matches/{match}/correct")
async def correct(
    match: MatchId, body: Corrected, who: Operator, house: AHouse
) -> CorrectedShown:
    """A stored match put right, whole, by the same strict rules; who, why and what it was is in the audit."""
    page = _checked(body.match)
    changed = await house.retoma.write(
        lambda tx: store.repairs.correct(
            tx, match, body.revision, page, body.why, actor=who.name
        )
    )
    return CorrectedShown(match=await match_told(house, match), changed=changed)


@routes.post("/api/matches/{match}/delete")
async def delete(match: MatchId, body: Deleted, who: Operator, house: AHouse) -> DeletedShown:
    """A match is stored no longer: its round is not complete, until `retry-failed` has brought it back."""
    jobs = await house.retoma.write(
        lambda tx: store.repairs.delete(tx, match, body.revision, body.why, actor=who.name)
    )
    return DeletedShown(jobs=jobs)


@routes.post("/api/matches/{match}/refresh", status_code=202)
async def refresh(match: MatchId, body: Reason, who: Operator, house: AHouse) -> RefreshShown:
    """Its site is asked for it again; what is stored stays until the page was read and is its page."""
    job = await house.retoma.write(
        lambda tx: store.repairs.refresh(tx, match, body.why, actor=who.name)
    )
    return RefreshShown(job=job)


@routes.post("/api/scrape/tasks/{task}/drop")
async def drop(task: TaskId, body: Reason, who: Operator, house: AHouse) -> TaskShown:
    """A match that never was: its round expects it no longer, also in later scrapes."""
    await house.retoma.write(lambda tx: store.repairs.drop(tx, task, body.why, actor=who.name))
    return task_told(await read(house, partial(store.tasks.task_seen, task=task)))


@routes.post("/api/scrape/tasks/{task}/restore")
async def restore(task: TaskId, who: Operator, house: AHouse) -> TaskShown:
    """A match that was dropped is one of its round after all."""
    await house.retoma.write(lambda tx: store.repairs.restore(tx, task, actor=who.name))
    return task_told(await read(house, partial(store.tasks.task_seen, task=task)))


@routes.post("/api/rounds/{league}/{season}/{round}/size")
async def confirm_size(
    league: Annotated[str, Path(max_length=100, description="The key of a league.")],
    season: Annotated[int, Path(ge=1, le=9_999, description="The year of a season.")],
    round: Annotated[int, Path(ge=1, le=1_000, description="The number of a round.")],  # noqa: A002
    body: SizeConfirmed,
    who: Operator,
    house: AHouse,
) -> RoundShown:
    """How many matches a round has, where its league does not know: a person says so, and why."""
    of = checked_round(league, season, round)
    await house.retoma.write(
        lambda tx: store.repairs.confirm(tx, of, body.matches, body.why, actor=who.name)
    )
    return await round_told(house, of)


def _checked(told: dict[str, Any]) -> MatchPage:
    try:
        page = from_json(MatchPage, encode(told))
    except SchemaInvalid as error:
        raise Refusal(
            "bad_input",
            say("the match does not add up; nothing was changed"),
            [Flaw(each.path, in_words(each.why)) for each in error.problems],
        ) from None
    if page.status is not MatchStatus.FINISHED:
        raise BadInput(
            say("only a match that is over is stored, not {status}", status=page.status)
        )
    return page


def _told(each: Reread) -> RereadShown:
    return RereadShown.model_validate(each)
