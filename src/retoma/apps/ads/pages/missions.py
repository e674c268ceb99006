"""The Banco de Missões and one mission: looked for, ticked, queued, canceled; what happened to it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.responses import Response

from retoma.apps.ads import api, store
from retoma.apps.ads.api.how import time_told
from retoma.apps.ads.api.missions import NewMission, NewMissions, Ticked, language
from retoma.apps.ads.model import ERRORS, Checkpoint, MediaType, Status
from retoma.apps.ads.pages.looks import CONCERN, MISSION_LOOKS, concern_of, path_of, read
from retoma.apps.ads.pages.words import details, event_name, field_name
from retoma.apps.ads.store import MissionSearch
from retoma.engine.rules.errors import IllegalMove, NotFound
from retoma.engine.rules.states import ParkReason
from retoma.engine.run.transaction import Transaction
from retoma.web.cursor import Cursor
from retoma.web.pages.asked import Blank, CodeOf, CursorOf, filled
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Looker, Pages, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, form_of, page_router, streamed
from retoma.web.pages.view import View
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
OPEN: Final = (Status.QUEUED, Status.RUNNING)
BAD: Final = ("mission_failed", "session_failed", "scrape_failed", "writer_failed")

StatusOf = Annotated[Status | None, Blank, Query()]
MediaOf = Annotated[MediaType | None, Blank, Query()]
Language = Annotated[str, AfterValidator(language)]
LanguageOf = Annotated[Language | None, Blank, Query()]
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
class BankScreen:
    """A page of missions, the newest first."""

    pages: Pages = field(compare=False, repr=False)
    view: View
    search: MissionSearch
    cursor: str | None = None
    concern: Concern = CONCERN

    @property
    def key(self) -> "BankScreen":
        return self

    async def draw(self) -> Sequence[Region]:
        stamp = Cursor("missions page", self.search.asked())
        [before] = stamp.read(self.cursor, str) or [None]
        found = await read(
            self.pages,
            lambda tx: store.list_missions(tx, self.search, before=before, n=PAGE + 1),
        )
        missions = [api.missions.mission_told(row) for row in found[:PAGE]]
        rows = {
            f"mission-{each['id']}": self.pages.render(
                "ads/mission_row.html",
                self.view,
                mission=each,
                look=MISSION_LOOKS.get(each["status"], ""),
            )
            for each in missions
        }
        following = stamp.write(missions[-1]["id"] if len(found) > PAGE else None)
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
        counts = await read(self.pages, store.count_by_status)
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


@routes.get("/live/ads/missions")
async def live_all(_: Viewer, who: ALooker, request: Request, screen: ABank) -> Response:
    return await streamed(request, who, screen)


# — one —


@dataclass(frozen=True, slots=True)
class Line:
    """What happened, in one line; what is too much for that apart."""

    at: datetime | None
    event: str
    word: str
    said: str
    more: str
    bad: bool


@dataclass(frozen=True, slots=True)
class InHands:
    """Who has a mission, by name, and what is said of that."""

    worker: str | None
    writer: str | None
    job: int | None
    parked: bool | None
    note: str | None
    reason: str | None  # why it is parked

    @property
    def resumable(self) -> bool:
        """Whether it goes on once a person has seen to its cause; else the job asks what is so."""
        return bool(self.parked) and self.reason != ParkReason.UNKNOWN_REMOTE


@dataclass(frozen=True, slots=True)
class MissionScreen:
    """One mission."""

    pages: Pages = field(compare=False, repr=False)
    view: View
    mission: str
    concern: Concern = CONCERN

    @property
    def key(self) -> "MissionScreen":
        return self

    async def draw(self) -> Sequence[Region]:
        row = await read(self.pages, lambda tx: tx.one(store.GET_MISSION, mission=self.mission))
        if row is None:
            raise NotFound(say("there is no mission {mission}", mission=self.mission))
        told = await read(
            self.pages, lambda tx: tx.all(store.LIST_TIMELINE, mission=self.mission)
        )
        hands = await read(
            self.pages, lambda tx: tx.one(store.WHO_HAS_IT, mission=self.mission)
        )
        mission = api.missions.mission_told(row)
        error = ERRORS.get(mission["error_code"])
        refused = await api.missions.failed_items_shown(self.pages.house, self.mission, ITEMS)
        given: dict[str, Any] = {
            "mission": mission,
            "hands": InHands(*(hands or [None] * 6)),
            "means": error.means if error else HTTP_MEANS.get(mission["error_code"]),
            "look": MISSION_LOOKS.get(mission["status"], ""),
            "path": path_of(mission["checkpoint"], mission["status"]),
            "open": mission["status"] in OPEN,
            "unconfirmed": await read(
                self.pages, lambda tx: store.stops_unseen(tx, self.mission)
            ),
            "resendable": _resendable(mission),
            "refused": [(each.index, each.error, _json(each.data)) for each in refused],
            "lines": [self._line(*each) for each in reversed(told)][:LINES],
            "called": partial(field_name, self.view),
        }
        return [
            drawn(
                f"mission-{part}",
                self.pages.render(f"ads/mission_{part}.html", self.view, **given),
            )
            for part in ("head", "facts", "refused", "timeline")
        ]

    def _line(self, at: Any, event: str, said: Any) -> Line:
        told = store.json_of(said) or {}
        rest = {name: value for name, value in told.items() if isinstance(value, dict | list)}
        return Line(
            at=time_told(at),
            event=event,
            word=event_name(self.view, event),
            said=details(self.view, told),
            more=_json(rest) if rest else "",
            bad=event in BAD,
        )


def _resendable(mission: dict[str, Any]) -> bool:
    """Whether its ads may go to a writer once more."""
    if mission["worker_data_url"] is None:
        return False
    if mission["status"] == Status.COMPLETED:
        return bool(mission["failed_count"])
    return (mission["status"], mission["checkpoint"]) == (
        Status.FAILED,
        Checkpoint.ARMAZENAMENTO,
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


async def mission_screen(mission: api.missions.MissionId, who: ALooker) -> MissionScreen:
    return MissionScreen(who.pages, who.view, mission, await concern_of(who.pages))


AMission = Annotated[MissionScreen, Depends(mission_screen)]


@routes.get("/ads/missions/{mission}")
async def show(_: Viewer, who: ALooker, screen: AMission) -> Response:
    return await who.page(screen, "ads/mission.html", mission=screen.mission)


@routes.get("/live/ads/missions/{mission}")
async def live(_: Viewer, who: ALooker, request: Request, screen: AMission) -> Response:
    return await streamed(request, who, screen)


# — what people do —


@routes.post("/ads/missions")
async def add(actor: Operator, who: ALooker, request: Request) -> Response:
    """A new mission, into the Banco de Missões."""
    form = await form_of(request)
    told = {name: form.one(name) for name in ("date_start", "date_end", "media_type")}
    languages = (form.one("languages") or "").replace(",", " ").split()
    wanted = filled(NewMission, {**told, "languages": languages})
    body = NewMissions(missions=[wanted])
    made = await api.missions.add_missions(body, actor, who.house, Response())
    said = say("{mission} is in the mission bank.", mission=made.ids[0])
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
        ids = await read(
            who.pages, lambda tx: store.find_missions(tx, meant, most=api.missions.MOST)
        )
    ticked = filled(Ticked, {"missions": ids})
    match form.one("verb"):
        case "queue" | "again" as verb:
            await who.house.retoma.write(
                partial(
                    store.queue_missions,
                    missions=ticked.missions,
                    actor=actor.name,
                    again=verb == "again",
                )
            )
            said = say("added to the queue: {n}", n=len(ticked.missions))
        case "delete":
            await api.missions.delete_missions(ticked, actor, who.house)
            n = len(ticked.missions)
            said = (
                say("1 mission deleted; its log stays")
                if n == 1
                else say("{n} missions deleted; their log stays", n=n)
            )
        case "resume":
            await who.house.retoma.write(
                partial(store.resume_parked, missions=ticked.missions, actor=actor.name)
            )
            said = say("resumed: {n}", n=len(ticked.missions))
        case "resend":
            await who.house.retoma.write(
                partial(_resent, missions=ticked.missions, actor=actor.name)
            )
            said = say("sent to a writer again: {n}", n=len(ticked.missions))
        case "cancel":
            said = await _canceled(who, ticked.missions, actor.name)
        case _:
            raise Refusal("bad_input", say("unknown action; nothing was changed"))
    return did(who, who.view.tell(said), form.one("next") or BANK)


def _resent(tx: Transaction, missions: Sequence[str], actor: str) -> None:
    """All of them, or none."""
    for mission in missions:
        store.resend_failed(tx, mission, actor=actor)


async def _canceled(who: Looker, missions: Sequence[str], actor: str) -> Said:
    """Each by itself: one that has just ended keeps nobody from canceling the others."""
    canceled = 0
    for mission in missions:
        try:
            await who.house.retoma.write(
                partial(store.cancel_mission, mission=mission, actor=actor)
            )
        except IllegalMove:
            if len(missions) == 1:
                raise
            continue
        canceled += 1
    if canceled == len(missions):
        return say("cancellation requested: {n}", n=canceled)
    return say(
        "cancellation requested: {n} of {all}; the others have nothing to cancel",
        n=canceled,
        all=len(missions),
    )
