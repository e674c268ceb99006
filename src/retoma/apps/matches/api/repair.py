"""The document's interface of repairs: pages that were refused, seen, read again, accepted with a reason."""

from functools import partial
from typing import Annotated, Any, Final

from fastapi import Response
from pydantic import Field, JsonValue, StrictBool, StrictStr

from retoma.apps.matches import store
from retoma.apps.matches.api.how import LeagueName, TaskId, read, routes
from retoma.apps.matches.api.scrapes import TaskShown, task_told
from retoma.apps.matches.model import MatchStatus, SchemaInvalid
from retoma.apps.matches.replay import FIRST, Place, Replay, Reread, Which
from retoma.apps.matches.schemas import MatchPage, from_json
from retoma.apps.matches.words import in_words
from retoma.codec import encode
from retoma.engine.errors import BadInput, NotFound
from retoma.web import AHouse, House, Operator
from retoma.web.cursor import Cursor
from retoma.web.files import TEXT_FILE, text_file
from retoma.web.problems import Flaw, Refusal
from retoma.web.wire import MARK, Body, CodeName, Id, Shown, Why
from retoma.words import say

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
