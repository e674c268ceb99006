"""One scrape of a round: each match a cell, live; whether it may be published; and how it is repaired."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from markupsafe import Markup
from starlette.responses import Response

from retoma.access import Person
from retoma.apps.matches import api, store
from retoma.apps.matches.api.how import ScrapeId, read
from retoma.apps.matches.api.repair import SizeConfirmed
from retoma.apps.matches.api.scrapes import (
    ScrapeShown,
    TaskShown,
    WhichFailed,
    WhichRound,
    scrape_told,
    task_told,
)
from retoma.apps.matches.model import ATTEMPTS, TaskStatus
from retoma.apps.matches.pages.looks import (
    CONCERN,
    LOOKS,
    PAGE,
    REPLAY,
    bar_of,
    evidence_told,
    field_of,
    league_name,
    led,
    meaning_of,
    round_at,
    share_of,
    short,
    task_at,
    team_name,
    why_not_yet,
)
from retoma.apps.matches.pages.snapshots import frame, kept
from retoma.apps.matches.store.rows import Round
from retoma.db import Transaction
from retoma.web.pages.asked import filled
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Looker, Pages, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, form_of, page_router, streamed
from retoma.web.pages.view import View
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator, Viewer
from retoma.words import Said, say

routes = page_router()
T = TaskStatus

OPEN: Final = ("waiting", "running", "parked")  # states of a discovery that goes on


@dataclass(frozen=True, slots=True)
class Seen:
    """A scrape with all that is shown of it."""

    scrape: ScrapeShown
    discovery: str
    ended: bool  # a later one is the round's current scrape
    cells: Sequence[tuple[TaskShown, tuple[int, int] | None]]
    near: dict[int, int]

    @property
    def number(self) -> int:
        return self.scrape.round


@dataclass(frozen=True, slots=True)
class RoundScreen:
    """One scrape of a round."""

    pages: Pages = field(compare=False, repr=False)
    view: View
    run: int

    @property
    def key(self) -> "RoundScreen":
        return self

    @property
    def concern(self) -> Concern:
        return CONCERN

    async def draw(self) -> Sequence[Region]:
        seen = await read(self.pages.house, self._looked_at)
        return [drawn("round-head", await self._head(seen)), self._cells(seen)]

    def _looked_at(self, tx: Transaction) -> Seen:
        told = store.runs.job_seen(tx, self.run)
        scrape = scrape_told(told)
        cells = [(task_told(task), at) for task, at in store.boards.cells_of(tx, self.run)]
        near = store.boards.runs_near(tx, Round(scrape.league, scrape.season, scrape.round))
        ended = told["ended_at"] is not None
        return Seen(scrape, told["discovery_state"], ended, cells, near)

    async def _head(self, seen: Seen) -> Markup:
        scrape = seen.scrape
        failed = scrape.failed + (seen.discovery == "dead")
        undone = scrape.error is not None and seen.discovery == "dead"
        given: dict[str, Any] = {
            "scrape": scrape,
            "league": league_name(scrape.league),
            "look": LOOKS[scrape.status],
            "looks": LOOKS,
            "bar": bar_of(scrape),
            "share": share_of(scrape),
            "counts": _counts(seen),
            "missing": None if scrape.expected is None else scrape.expected - scrape.stored,
            "unlisted": max(0, (scrape.expected or 0) - scrape.listed),
            "waits": scrape.not_yet > 0
            or (seen.discovery == "waiting" and scrape.status is T.NOT_YET),
            "looking": seen.discovery in OPEN,
            "current": seen.near.get(scrape.round) if seen.ended else None,
            "before": seen.near.get(scrape.round - 1),
            "after": seen.near.get(scrape.round + 1),
            "failed": failed,
            "steers": self.view.steers and not seen.ended,
            "repairable": failed > 0,
            "place": round_at,
            "home": PAGE + query_of({"liga": scrape.league, "temporada": scrape.season}),
            "replay": REPLAY + query_of({"rodada": scrape.id}),
            "evidence": evidence_told(self.view, scrape.error) if undone else None,
            "snapshot": await kept(self.pages, self.view, scrape.discovery, scrape.snapshot)
            if undone
            else None,
            "frame": f"{round_at(scrape.id)}/pagina",
            "save": None,
        }
        return self.pages.render("matches/round_head.html", self.view, **given)

    def _cells(self, seen: Seen) -> Region:
        cells = {
            f"task-{task.id}": self.pages.render(
                "matches/match_cell.html", self.view, **cell_given(self.view, task, score)
            )
            for task, score in seen.cells
        }
        whole = self.pages.render(
            "matches/round_cells.html",
            self.view,
            cells=cells.values(),
            looking=seen.discovery in OPEN,
        )
        return drawn("round-cells", whole, cells)


def _counts(seen: Seen) -> list[tuple[TaskStatus, int]]:
    """Of each status how many; what is not there is not told."""
    statuses = [task.status for task, _ in seen.cells]
    return [(each, statuses.count(each)) for each in T if each in statuses]


def cell_given(view: View, task: TaskShown, score: tuple[int, int] | None) -> dict[str, Any]:
    """What a cell says of a match."""
    return {
        "task": task,
        "score": score,
        "look": LOOKS[task.status],
        "names": tuple(team_name(task.league, each) for each in (task.home, task.away)),
        "kickoff": short(view, task.kickoff),
        "again_at": short(view, task.look_again_at),
        "not_yet": why_not_yet(view, task.not_yet),
        "field": field_of(task.error),
        "meaning": meaning_of(view, task.error_code),
        "attempts": min(task.attempts, ATTEMPTS),
        "most": ATTEMPTS,
        "place": task_at(task.id),
    }


def round_screen(run: ScrapeId, who: ALooker) -> RoundScreen:
    return RoundScreen(who.pages, who.view, run)


AScreen = Annotated[RoundScreen, Depends(round_screen)]


@routes.get("/matches/rodada/{run}")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    scrape = await api.scrapes.scrape_of(who.house, screen.run)
    name = f"{league_name(scrape.league)} {scrape.season}"
    return await who.page(
        screen,
        "matches/round.html",
        run=screen.run,
        name=name,
        number=scrape.round,
        unlisted=max(0, (scrape.expected or 0) - scrape.listed),
    )


@routes.get("/live/matches/rodada/{run}")
async def live(_: Viewer, who: ALooker, request: Request, screen: AScreen) -> Response:
    return await streamed(request, who, screen)


@routes.get("/matches/rodada/{run}/pagina")
async def snapshot(run: ScrapeId, _: Operator, who: ALooker) -> Response:
    """The page of the round that was refused, for the frame."""
    told = await read(who.house, partial(store.runs.job_seen, run=run))
    return await frame(who, told["snapshot"], told["error"])


@routes.post("/matches/rodada/{run}/tamanho")
async def confirm(run: ScrapeId, actor: Operator, who: ALooker, request: Request) -> Response:
    """ "Confirmar": how many matches the round has, because a person says so."""
    form = await form_of(request)
    said = form.one("matches") or ""
    matches = int(said) if said.isascii() and said.isdigit() and len(said) < 9 else said
    body = filled(SizeConfirmed, {"matches": matches, "why": form.one("why")})
    of = await api.scrapes.scrape_of(who.house, run)
    await api.repair.confirm_size(of.league, of.season, of.round, body, actor, who.house)
    return led(who, round_at(run))


@routes.post("/matches/rodada/{run}/{verb}")
async def steer(run: ScrapeId, verb: str, actor: Operator, who: ALooker) -> Response:
    """ "Tentar de novo o que falhou", "Procurar o que falta"."""
    said = await _steered(who, run, verb, actor)
    return did(who, who.view.tell(said), round_at(run))


async def _steered(who: Looker, run: int, verb: str, actor: Person) -> Said:
    match verb:
        case "falhas":
            which = WhichFailed(job_id=run)
            tried = await api.scrapes.retry_failed(which, actor, who.house)
            return say("matches tried again: {n}", n=len(tried.jobs))
        case "olhar":
            looked = await api.scrapes.hurry_scrape(run, actor, who.house)
            return say("looked at now: {n}", n=len(looked.jobs))
        case "faltas":
            scrape = await api.scrapes.scrape_of(who.house, run)
            of = WhichRound(league=scrape.league, season=scrape.season, round=scrape.round)
            missing = await api.scrapes.retry_missing(of, actor, who.house)
            return say(
                "missing matches tried again: {n} of {all}; the page of the round is read again",
                n=len(missing.jobs),
                all=len(missing.missing),
            )
        case _:
            raise Refusal("not_found", say("there is nothing at this address"))
