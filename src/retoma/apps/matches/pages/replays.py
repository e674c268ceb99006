"""Refused pages read again: what would change is shown, and then what can be read is stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Query, Request
from starlette.responses import Response

from retoma.apps.matches import APP
from retoma.apps.matches.inputs import ReplayAsked
from retoma.apps.matches.pages.presenters import (
    PAGE,
    evidence_told,
    field_of,
    led,
    round_at,
    task_at,
    why_not_yet,
)
from retoma.apps.matches.service.replays import FIRST, Replay, Reread, Which
from retoma.apps.matches.sites import league_name, sites
from retoma.engine.rules.errors import BadInput
from retoma.web.pages.asked import Blank, CodeOf, Name, Number, filled
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker
from retoma.web.pages.route import form_of, page_router
from retoma.web.pages.view import View
from retoma.web.sign_in import Operator
from retoma.words import Said, say

routes = page_router()

MOST: Final = 200  # pages that are read at a time
SLICES: Final = 10  # that one click stores; what is left is shown again
CODES: Final = ("LAYOUT_CHANGED", "SCHEMA_INVALID", "ROUND_SHORT")
CHOICES: Final = next(each.choices for each in APP.knobs if each.name == "layouts")
# How what became of a page is told, and the colour of it.
CHANGES: Final[Mapping[str, tuple[Said, str]]] = {
    "stored": (say("can be stored"), "done"),
    "discovered": (say("the matches of the round are known"), "done"),
    "not_yet": (say("the match is not over"), "parked"),
    "refused": (say("is still refused"), "dead"),
    "lost": (say("the page is gone"), "dead"),
    "moved": (say("another user has changed it meanwhile"), "parked"),
}

NameOf = Annotated[Name | None, Blank, Query()]
NumberOf = Annotated[Number | None, Blank, Query()]


@dataclass(frozen=True, slots=True)
class Line:
    """A page, and what it comes to now."""

    page: Reread
    place: str
    league: str
    before: str
    said: str
    look: str
    detail: str


@routes.get("/matches/reler")
async def show(
    actor: Operator,
    who: ALooker,
    liga: NameOf = None,
    codigo: CodeOf = None,
    rodada: NumberOf = None,
    tarefa: NumberOf = None,
    leitores: NameOf = None,
) -> Response:
    """A dry run: nothing is changed, and nothing is asked of the site."""
    asked = _asked(liga, codigo, rodada, tarefa, leitores)
    which, replay = asked.which(), _replay(who)
    reread, following = await replay.bite(which, FIRST, MOST, apply=False, actor=actor.name)
    return who.answer(
        "matches/replay.html",
        asked=asked,
        readable=sum(each.readable for each in reread),
        lines=[_line(who.view, each) for each in reread],
        more=0 if following is None else await replay.count(which) - len(reread),
        layouts=CHOICES,
        now=(await who.house.retoma.knobs.get("matches.layouts")).value,
        leagues=[each.league for each in sites().values()],
        codes=CODES,
        back=_back(asked),
    )


@routes.post("/matches/reler")
async def promote(actor: Operator, who: ALooker, request: Request) -> Response:
    """ "Gravar": what can be read is stored, each match whole; the rest stays as it is."""
    form = await form_of(request)
    asked = _asked(
        form.one("liga"),
        form.one("codigo"),
        _number(form.one("rodada")),
        _number(form.one("tarefa")),
        form.one("leitores"),
    )
    if not await _promoted(_replay(who), asked.which(), actor.name):
        raise BadInput(say("no page can be read by these parsers; nothing was changed"))
    return led(who, _back(asked))


def _replay(who: ALooker) -> Replay:
    return Replay(who.house.retoma, who.house.settings.matches_url)


async def _promoted(replay: Replay, which: Which, actor: str) -> int:
    """How many were stored: each in a transaction of its own, so that no click is in vain."""
    stored, place = 0, FIRST
    for _ in range(SLICES):
        reread, following = await replay.bite(which, place, MOST, apply=True, actor=actor)
        stored += sum(each.promoted for each in reread)
        if following is None:
            break
        place = following
    return stored


def _asked(
    liga: str | None,
    codigo: str | None,
    rodada: int | None,
    tarefa: int | None,
    leitores: str | None,
) -> ReplayAsked:
    told = {
        "league": liga,
        "code": codigo,
        "job_id": rodada,
        "task_id": tarefa,
        "layouts": leitores,
    }
    return filled(ReplayAsked, told)


def _number(given: str | None) -> int | None:
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) < 19):
        raise BadInput(say("{given!r} is no number; nothing was changed", given=given))
    return int(given)


def _back(asked: ReplayAsked) -> str:
    """Where it began, and its end is seen."""
    if asked.task_id is not None:
        return task_at(asked.task_id)
    if asked.job_id is not None:
        return round_at(asked.job_id)
    return PAGE + query_of({"liga": asked.league})


def _line(view: View, page: Reread) -> Line:
    said, look = CHANGES[page.change]
    before = page.before if isinstance(page.before, dict) else {}
    place = task_at(page.id) if page.what == "task" else round_at(page.id)
    was = f"{before.get('code', '')} {field_of(before)}".strip()
    league = league_name(page.round.partition(" ")[0])
    return Line(page, place, league, was, view.tell(said), look, _detail(view, page))


def _detail(view: View, page: Reread) -> str:
    """What would be stored, or what it is still refused for."""
    after: Any = page.after if isinstance(page.after, dict) else {}
    match page.change:
        case "stored":
            score = after["score"]
            how = {"home": score["home"], "away": score["away"], "n": len(after["events"])}
            return view.tell(say("{home}-{away}, events: {n}", **how))
        case "discovered":
            return view.tell(say("matches: {n}", n=len(after["matches"])))
        case "refused":
            told = evidence_told(view, after)
            why = told["problems"][0][1] if told["problems"] else ""
            return f"{told['code']} {field_of(after)} {why}".strip()
        case "not_yet":
            return why_not_yet(view, after.get("status"))
        case _:
            return ""  # what is said of the change is all
