"""The Banco de Missões and one mission: looked for, ticked, queued, canceled; what happened to it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Depends, Path, Query, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.responses import Response

from retoma.apps.ads.model import ERRORS, MediaType, Status
from retoma.apps.ads.pages.presenters import (
    CONCERN,
    MISSION_LOOKS,
    concern_of,
    format_json,
    mission_rows,
    path_of,
    timeline_line,
)
from retoma.apps.ads.pages.words import MEANINGS, field_name
from retoma.apps.ads.service import missions
from retoma.apps.ads.service.inputs import (
    MOST_MISSIONS,
    NewMission,
    Ticked,
    language,
)
from retoma.apps.ads.store import MissionSearch
from retoma.web.cursor import Cursor
from retoma.web.pages.asked import Blank, CodeOf, CursorOf, filled
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Screen, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, form_of, page_router, serve_screen
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator, Viewer
from retoma.words import Said, say

routes = page_router()

PAGE: Final = 50  # rows
LINES: Final = 300  # of what happened to a mission, the newest
ITEMS: Final = 50  # ads of it that were refused, the first
BANK: Final = "/ads/missions"
NO_SUCH_MISSION: Final = say("No results")
NO_MISSIONS: Final = say(
    "No missions yet: the first is made with New mission, many by a range of days;"
    " in a shell: `retoma ads generate`."
)
# What a service answered instead of taking it, where a person has to see to that.
HTTP_MEANS: Final = {
    "HTTP401": say("The service does not accept our API key: correct it, then resume."),
    "HTTP403": say("The service refuses our API key: correct it, then resume."),
    "HTTP404": say("The service does not know this address: correct its URL, then resume."),
    "HTTP422": say("The service refuses what it was sent: see what it says, then resume."),
    "CONFIG": say("Something is set up wrong: correct it, then resume."),
}
StatusOf = Annotated[Status | None, Blank, Query()]
MediaOf = Annotated[MediaType | None, Blank, Query()]
Language = Annotated[str, AfterValidator(language)]
LanguageOf = Annotated[Language | None, Blank, Query()]
MissionId = Annotated[str, Path(min_length=1, max_length=100)]
DayOf = Annotated[date | None, Blank, Query()]


class Wanted(BaseModel):
    """A filter, as the form of the bank says it."""

    model_config = ConfigDict(extra="forbid")

    status: Status | None = None
    media_type: MediaType | None = None
    language: Language | None = None
    since: date | None = None
    until: date | None = None
    code: Annotated[str, Field(max_length=20)] | None = None


# — all of them —


@dataclass(frozen=True, slots=True)
class BankScreen(Screen):
    """A page of missions, the newest first."""

    search: MissionSearch
    cursor: str | None = None
    concern: Concern = CONCERN

    async def draw(self) -> Sequence[Region]:
        stamp = Cursor("missions page", self.search.asked())
        [before] = stamp.read(self.cursor, str) or [None]
        retoma = self.pages.house.retoma
        found = await missions.list_missions(retoma, self.search, before=before, limit=PAGE + 1)
        rows = mission_rows(self.pages, self.view, found[:PAGE])
        following = stamp.write(found[PAGE - 1].id if len(found) > PAGE else None)
        filtered = self.search != MissionSearch()
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NO_SUCH_MISSION if filtered else NO_MISSIONS,
            way=(say("Clear"), BANK) if filtered else (say("Generate missions"), "/ads/import"),
            following=following and address(self.search, following),
            first=self.cursor and address(self.search),
        )
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        counts = await missions.count_missions(retoma)
        tabs = self.pages.render(
            "ads/missions_tabs.html",
            self.view,
            search=self.search,
            counts=counts,
            total=sum(counts.values()),
            link=lambda status: address(replace(self.search, status=status)),
        )
        return [drawn("tabs", tabs), drawn("rows", table, rows), turns]


def address(search: MissionSearch, cursor: str | None = None) -> str:
    return BANK + query_of({**search.asked(), "cursor": cursor})


async def bank_screen(
    who: ALooker,
    status: StatusOf = None,
    media_type: MediaOf = None,
    language: LanguageOf = None,
    since: DayOf = None,
    until: DayOf = None,
    code: CodeOf = None,
    cursor: CursorOf = None,
) -> BankScreen:
    search = MissionSearch(
        status=status,
        media_type=media_type,
        language=language,
        since=since,
        until=until,
        code=code,
    )
    return BankScreen(who.pages, who.view, search, cursor, await concern_of(who.pages))


ABank = Annotated[BankScreen, Depends(bank_screen)]


@routes.get("/ads/missions")
async def show_all(_: Viewer, who: ALooker, screen: ABank) -> Response:
    return await who.page(
        screen,
        "ads/missions.html",
        search=screen.search,
        media_types=MediaType,
        filters=screen.search.asked(),
    )


serve_screen(routes, "/ads/missions", bank_screen)


# — one —


@dataclass(frozen=True, slots=True)
class MissionScreen(Screen):
    """One mission."""

    mission: str
    concern: Concern = CONCERN

    async def draw(self) -> Sequence[Region]:
        retoma = self.pages.house.retoma
        mission = await missions.get_mission(retoma, self.mission)
        happened = await missions.get_timeline(retoma, self.mission)
        refused = await missions.list_failed_items(retoma, self.mission, ITEMS)
        code = mission.error_code or ""
        error = ERRORS.get(code)
        given: dict[str, Any] = {
            "mission": mission,
            "hands": await missions.get_mission_holder(retoma, self.mission),
            "means": MEANINGS[code] if error else HTTP_MEANS.get(code),
            "look": MISSION_LOOKS.get(mission.status, ""),
            "path": path_of(mission.checkpoint, mission.status),
            "open": mission.is_open,
            "unconfirmed": await missions.is_cancel_unconfirmed(retoma, self.mission),
            "resendable": mission.is_resendable,
            "refused": [(each.index, each.error, format_json(each.data)) for each in refused],
            "lines": [timeline_line(self.view, each) for each in happened[-LINES:][::-1]],
            "called": partial(field_name, self.view),
        }
        return [
            drawn(
                f"mission-{part}",
                self.pages.render(f"ads/mission_{part}.html", self.view, **given),
            )
            for part in ("head", "facts", "refused", "timeline")
        ]


async def mission_screen(mission: MissionId, who: ALooker) -> MissionScreen:
    return MissionScreen(who.pages, who.view, mission, await concern_of(who.pages))


AMission = Annotated[MissionScreen, Depends(mission_screen)]


@routes.get("/ads/missions/{mission}")
async def show(_: Viewer, who: ALooker, screen: AMission) -> Response:
    return await who.page(screen, "ads/mission.html", mission=screen.mission)


serve_screen(routes, "/ads/missions/{mission}", mission_screen)


# — what people do —


@routes.post("/ads/missions")
async def add(actor: Operator, who: ALooker, request: Request) -> Response:
    """A new mission, into the Banco de Missões."""
    form = await form_of(request)
    given = {name: form.one(name) for name in ("date_start", "date_end", "media_type")}
    languages = (form.one("languages") or "").replace(",", " ").split()
    entered = filled(NewMission, {**given, "languages": languages})
    [added] = await missions.add_missions(who.house.retoma, [entered.mission], actor=actor.name)
    said = say("{mission} is in the mission bank.", mission=added)
    return did(who, who.view.tell(said), BANK)


@routes.post("/ads/missions/orders")
async def order(actor: Operator, who: ALooker, request: Request) -> Response:
    """ "Adicionar à fila", "Refazer", "Cancelar", "Excluir", "Reenviar recusados"."""
    form = await form_of(request)
    ids = sorted({*form.all("mission")})
    if form.one("all") is not None:
        asked = {
            each.name: form.one(f"filter_{each.name}") or None for each in fields(MissionSearch)
        }
        search = filled(Wanted, asked)
        meant = MissionSearch(**search.model_dump())
        ids = await missions.find_missions(who.house.retoma, meant, most=MOST_MISSIONS)
    ticked = filled(Ticked, {"missions": ids}).missions
    retoma, by = who.house.retoma, actor.name
    match form.one("verb"):
        case "queue" | "again" as verb:
            await missions.queue_missions(retoma, ticked, actor=by, again=verb == "again")
            said = say("added to the queue: {n}", n=len(ticked))
        case "delete":
            await missions.delete_missions(retoma, ticked, actor=by)
            n = len(ticked)
            said = (
                say("1 mission deleted; its log stays")
                if n == 1
                else say("{n} missions deleted; their log stays", n=n)
            )
        case "resume":
            await missions.resume_missions(retoma, ticked, actor=by)
            said = say("resumed: {n}", n=len(ticked))
        case "resend":
            await missions.resend_missions(retoma, ticked, actor=by)
            said = say("sent to a writer again: {n}", n=len(ticked))
        case "cancel":
            canceled = await missions.cancel_missions(retoma, ticked, actor=by)
            said = _say_canceled(canceled, len(ticked))
        case _:
            raise Refusal("bad_input", say("unknown action; nothing was changed"))
    return did(who, who.view.tell(said), form.one("next") or BANK)


def _say_canceled(canceled: int, asked: int) -> Said:
    if canceled == asked:
        return say("cancellation requested: {n}", n=canceled)
    return say(
        "cancellation requested: {n} of {all}; the others have nothing to cancel",
        n=canceled,
        all=asked,
    )
