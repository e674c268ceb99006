"""A match put right by a person: what the page seems to say is in the form, the page itself beside it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any, Final
from zoneinfo import ZoneInfo

from fastapi import Request
from starlette.responses import Response

from retoma.apps.matches import service
from retoma.apps.matches.inputs import Accepted, Corrected, MatchId, TaskId
from retoma.apps.matches.model import EventKind, MatchStatus, Side
from retoma.apps.matches.pages.presenters import (
    KINDS,
    PAGE,
    STATISTICS,
    evidence_told,
    led,
    match_at,
    round_at,
    task_at,
)
from retoma.apps.matches.pages.snapshots import kept
from retoma.apps.matches.pages.tasks import names_of
from retoma.apps.matches.schemas import match_key
from retoma.apps.matches.sites import league_name, site_of
from retoma.apps.matches.store.games import WholeMatch
from retoma.apps.matches.store.tasks import ScrapeTask
from retoma.library import Retoma
from retoma.web.pages.asked import filled
from retoma.web.pages.kit import ALooker
from retoma.web.pages.route import Form, form_of, page_router
from retoma.web.sign_in import Operator
from retoma.words import say

routes = page_router()

BLANK: Final = 3  # lines more than there are events
LINES: Final = 200  # events
PARTS: Final = ("starters", "bench", "staff")
SQUADS: Final = tuple((side, part) for side in ("home", "away") for part in PARTS)
EVENT: Final = ("minute", "added", "side", "kind", "player", "other")
FROM_A_PAGE: Final = say(
    "What the page seems to say is filled in. It is checked by the same rules as every page;"
    " who accepted it and why stays in the audit."
)
FROM_STORED: Final = say(
    "What is stored is filled in. It is checked by the same rules as every page;"
    " who corrected it, why, and what it was stays in the audit."
)
PLAYER: Final = re.compile(r"([0-9]+)[\s.,;:·-]*(.*)")


@dataclass(frozen=True, slots=True)
class Draft:
    """What stands in the form before somebody has typed in it; all of it is text."""

    kickoff: str
    stadium: str
    score: Mapping[str, str]
    events: Sequence[Mapping[str, str]]
    statistics: Mapping[str, Mapping[str, str]]
    lineups: Mapping[str, str]
    walkover: bool = False


@routes.get("/matches/tarefa/{task}/editar")
async def show(task: TaskId, _: Operator, who: ALooker) -> Response:
    told = await service.scrapes.get_task(who.house.retoma, task)
    stored = None if told.partida_id is None else match_at(told.partida_id)
    return who.answer(
        "matches/edit.html",
        title=who.view.tell(say("Edit and accept")),
        verb=who.view.tell(say("Accept the match")),
        intro=who.view.tell(FROM_A_PAGE),
        back=who.view.tell(say("task {task}", task=told.id)),
        season=told.season,
        number=told.round,
        **names_of(told),
        place=task_at(task),
        post=f"{task_at(task)}/editar",
        stored=stored,
        revision=None,
        draft=await _drafted(who.house.retoma, told),
        blank=BLANK,
        kinds=KINDS,
        statistics=STATISTICS,
        squads=SQUADS,
        evidence=evidence_told(who.view, told.error),
        snapshot=await kept(who.pages, who.view, told.job, told.snapshot),
        frame=f"{task_at(task)}/pagina",
        save=f"/api/scrape/tasks/{task}/snapshot",
    )


@routes.post("/matches/tarefa/{task}/editar")
async def accept(task: TaskId, actor: Operator, who: ALooker, request: Request) -> Response:
    """ "Aceitar": by the same rules as a page that was read; who and why is in the audit."""
    form = await form_of(request)
    told = await service.scrapes.get_task(who.house.retoma, task)
    body = filled(Accepted, {"match": _match(told, form), "why": form.one("why")})
    await service.repairs.accept_match(
        who.house.retoma, task, body.page(), body.why, actor=actor.name
    )
    return led(who, task_at(task))


@routes.get("/matches/partidas/{match}/corrigir")
async def show_stored(match: MatchId, _: Operator, who: ALooker) -> Response:
    told = await service.games.get_match(who.house.retoma, match)
    current = await service.scrapes.find_current_scrape(who.house.retoma, told.of)
    return who.answer(
        "matches/edit.html",
        title=who.view.tell(say("Correct a stored match")),
        verb=who.view.tell(say("Correct the match")),
        intro=who.view.tell(FROM_STORED),
        back=who.view.tell(say("match {match}", match=told.id)),
        season=told.season,
        number=told.round,
        names=(told.home_name or told.home, told.away_name or told.away),
        league=league_name(told.league),
        round=PAGE if current is None else round_at(current),
        place=match_at(match),
        post=f"{match_at(match)}/corrigir",
        stored=None,
        revision=told.revision,
        draft=_draft_of(told),
        blank=BLANK,
        kinds=KINDS,
        statistics=STATISTICS,
        squads=SQUADS,
        evidence=None,
    )


@routes.post("/matches/partidas/{match}/corrigir")
async def correct(match: MatchId, actor: Operator, who: ALooker, request: Request) -> Response:
    """ "Corrigir": by the same rules as a page that was read; who, why and what it was is in the audit."""
    form = await form_of(request)
    told = await service.games.get_match(who.house.retoma, match)
    revision = _number(form.one("revision") or "")
    given = {"match": _match(told, form), "why": form.one("why"), "revision": revision}
    body = filled(Corrected, given)
    await service.repairs.correct_match(
        who.house.retoma,
        match,
        body.page(),
        body.why,
        actor=actor.name,
        revision=body.revision,
    )
    return led(who, match_at(match))


# — before: what the page seems to say —


async def _drafted(retoma: Retoma, task: ScrapeTask) -> Draft:
    told = await service.snapshots.draft_match(retoma, task)
    found = told.get("kickoff")
    kickoff = found if isinstance(found, datetime) else task.kickoff
    return Draft(
        kickoff="" if kickoff is None else _local(kickoff, site_of(task.league).league.zone),
        stadium=_text(told.get("stadium")),
        score={each: _text(_within(told.get("score"), each)) for each in Side},
        events=sorted(
            (_event(each) for each in list(told.get("events") or ())[:LINES]), key=_order
        ),
        statistics={
            name: {
                each: _text(_within(_within(told.get("statistics"), name), each))
                for each in Side
            }
            for name in STATISTICS
        },
        lineups={
            f"{side}-{part}": _players(_within(_within(told.get("lineups"), side), part))
            for side, part in SQUADS
        },
        walkover=told.get("walkover") is True,
    )


def _local(at: datetime, zone: str) -> str:
    """As the league's own clock has it, with its zone: nobody need guess."""
    return at.astimezone(ZoneInfo(zone)).isoformat()


def _event(told: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(told.get(name)) for name in EVENT}


def _order(event: Mapping[str, str]) -> tuple[Any, ...]:
    """As the rules tell them, so that a flaw of `events[3]` is found at the fourth line."""
    kinds = [str(each) for each in EventKind]
    kind = kinds.index(event["kind"]) if event["kind"] in kinds else len(kinds)
    away = event["side"] == Side.AWAY
    return _number(event["minute"]), _number(event["added"]), kind, away, event["player"]


def _number(said: str) -> int:
    return int(said) if said.isascii() and said.isdigit() else 0


def _players(told: Any) -> str:
    """One to a line: number and name; who does not play by the name alone."""
    these = told if isinstance(told, list | tuple) else ()
    return "\n".join(
        f"{_text(each.get('number'))} {_text(each.get('name'))}"
        if isinstance(each, dict)
        else _text(each)
        for each in these
    )


def _within(told: Any, name: str) -> Any:
    return told.get(name) if isinstance(told, dict) else None


def _text(value: Any) -> str:
    return "" if value is None else " ".join(str(value).split())[:200]


def _draft_of(told: WholeMatch) -> Draft:
    """A stored match, as it stands."""
    zone = site_of(told.league).league.zone
    lineups = told.lineups if isinstance(told.lineups, dict) else {}
    return Draft(
        kickoff="" if told.kickoff is None else _local(told.kickoff, zone),
        stadium=told.stadium,
        score={Side.HOME: str(told.home_score), Side.AWAY: str(told.away_score)},
        events=[_event(each) for each in told.events],
        statistics={
            name: {each: _text(told.statistics.get(name, {}).get(each)) for each in Side}
            for name in STATISTICS
        },
        lineups={
            f"{side}-{part}": _players(_within(lineups.get(side), part))
            for side, part in SQUADS
        },
        walkover=told.walkover,
    )


# — after: what somebody says it is —


def _match(task: ScrapeTask | WholeMatch, form: Form) -> dict[str, Any]:
    """Which match it is stands firm; the rest is as it was typed, to be checked."""
    return {
        "key": match_key(task.home, task.away),
        "league": task.league,
        "season": task.season,
        "round": task.round,
        "home": task.home,
        "away": task.away,
        "kickoff": form.one("kickoff"),
        "stadium": form.one("stadium") or "",
        "status": str(MatchStatus.FINISHED),
        "score": {each: form.one(f"score-{each}") or "" for each in Side},
        "events": _events(form),
        "walkover": form.one("walkover") is not None,
        "statistics": _statistics(form),
        "lineups": _lineups(form),
    }


def _statistics(form: Form) -> dict[str, Any] | None:
    """None where a match was awarded and nothing was counted in it."""
    told = {
        name: {each: form.one(f"{name}-{each}") or "" for each in Side} for name in STATISTICS
    }
    nothing = not any(said for sides in told.values() for said in sides.values())
    return None if nothing and form.one("walkover") else told


def _lineups(form: Form) -> dict[str, Any] | None:
    told: dict[str, dict[str, Any]] = {
        side: {part: _squad(form.one(f"{side}-{part}")) for part in ("starters", "bench")}
        for side in Side
    }
    nothing = not any(said for parts in told.values() for said in parts.values())
    if nothing and form.one("walkover"):
        return None
    for side, parts in told.items():
        lines = (form.one(f"{side}-staff") or "").splitlines()
        parts["staff"] = [each.strip() for each in lines if each.strip()]
    return told


def _events(form: Form) -> list[dict[str, Any]]:
    """A line without a minute and a player is none."""
    lines = zip_longest(*(form.all(f"event-{name}") for name in EVENT), fillvalue="")
    told = [dict(zip(EVENT, (each.strip() for each in line), strict=True)) for line in lines]
    return [
        {**each, "added": each["added"] or None, "other": each["other"] or None}
        for each in told
        if each["minute"] or each["player"]
    ]


def _squad(given: str | None) -> list[dict[str, str]]:
    lines = [each.strip() for each in (given or "").splitlines()]
    return [_player(each) for each in lines if each]


def _player(line: str) -> dict[str, str]:
    found = PLAYER.fullmatch(line)
    return (
        {"number": line, "name": ""}
        if found is None
        else dict(zip(("number", "name"), found.groups(), strict=True))
    )
