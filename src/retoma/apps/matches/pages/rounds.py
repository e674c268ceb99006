"""One scrape of a round: each match a cell, live; whether it may be published; and how it is repaired."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from markupsafe import Markup
from starlette.responses import Response

from retoma.apps.matches import service
from retoma.apps.matches.inputs import ScrapeId, SizeConfirmed
from retoma.apps.matches.model import ATTEMPTS, TaskStatus
from retoma.apps.matches.pages.presenters import (
    CONCERN,
    LOOKS,
    PAGE,
    REPLAY,
    bar_of,
    evidence_told,
    field_of,
    led,
    meaning_of,
    round_at,
    share_of,
    short,
    task_at,
    why_not_yet,
)
from retoma.apps.matches.pages.snapshots import frame, kept
from retoma.apps.matches.service.boards import RoundBoard
from retoma.apps.matches.sites import league_name, team_name
from retoma.apps.matches.store.tasks import ScrapeTask
from retoma.library import Retoma
from retoma.web.pages.asked import filled
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Screen, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, form_of, page_router, serve_screen
from retoma.web.pages.view import View
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator, Viewer
from retoma.words import Said, say

routes = page_router()
T = TaskStatus

OPEN: Final = ("waiting", "running", "parked")  # states of a discovery that goes on


@dataclass(frozen=True, slots=True)
class RoundScreen(Screen):
    """One scrape of a round."""

    run: int

    @property
    def concern(self) -> Concern:
        return CONCERN

    async def draw(self) -> Sequence[Region]:
        seen = await service.boards.get_round(self.pages.house.retoma, self.run)
        return [drawn("round-head", await self._head(seen)), self._cells(seen)]

    async def _head(self, seen: RoundBoard) -> Markup:
        scrape = seen.scrape
        ended = scrape.ended_at is not None
        failed = scrape.failed + (scrape.discovery_state == "dead")
        undone = scrape.error is not None and scrape.discovery_state == "dead"
        given: dict[str, Any] = {
            "scrape": scrape,
            "league": league_name(scrape.league),
            "look": LOOKS[scrape.status],
            "looks": LOOKS,
            "bar": bar_of(scrape),
            "share": share_of(scrape),
            "counts": _counts(seen),
            "missing": None if scrape.expected is None else scrape.expected - scrape.stored,
            "unlisted": scrape.unlisted,
            "waits": scrape.not_yet > 0
            or (scrape.discovery_state == "waiting" and scrape.status is T.NOT_YET),
            "looking": scrape.discovery_state in OPEN,
            "current": seen.near.get(scrape.round) if ended else None,
            "before": seen.near.get(scrape.round - 1),
            "after": seen.near.get(scrape.round + 1),
            "failed": failed,
            "steers": self.view.steers and not ended,
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

    def _cells(self, seen: RoundBoard) -> Region:
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
            looking=seen.scrape.discovery_state in OPEN,
        )
        return drawn("round-cells", whole, cells)


def _counts(seen: RoundBoard) -> list[tuple[TaskStatus, int]]:
    """Of each status how many; what is not there is not told."""
    statuses = [task.status for task, _ in seen.cells]
    return [(each, statuses.count(each)) for each in T if each in statuses]


def cell_given(view: View, task: ScrapeTask, score: tuple[int, int] | None) -> dict[str, Any]:
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
    scrape = await service.scrapes.get_scrape(who.house.retoma, screen.run)
    name = f"{league_name(scrape.league)} {scrape.season}"
    return await who.page(
        screen,
        "matches/round.html",
        run=screen.run,
        name=name,
        number=scrape.round,
        unlisted=scrape.unlisted,
    )


serve_screen(routes, "/matches/rodada/{run}", round_screen)


@routes.get("/matches/rodada/{run}/pagina")
async def snapshot(run: ScrapeId, _: Operator, who: ALooker) -> Response:
    """The page of the round that was refused, for the frame."""
    scrape = await service.scrapes.get_scrape(who.house.retoma, run)
    return await frame(who, scrape.snapshot, scrape.error)


@routes.post("/matches/rodada/{run}/tamanho")
async def confirm(run: ScrapeId, actor: Operator, who: ALooker, request: Request) -> Response:
    """ "Confirmar": how many matches the round has, because a person says so."""
    form = await form_of(request)
    said = form.one("matches") or ""
    matches = int(said) if said.isascii() and said.isdigit() and len(said) < 9 else said
    body = filled(SizeConfirmed, {"matches": matches, "why": form.one("why")})
    retoma = who.house.retoma
    of = (await service.scrapes.get_scrape(retoma, run)).of
    await service.repairs.confirm_size(retoma, of, body.matches, body.why, actor=actor.name)
    return led(who, round_at(run))


@routes.post("/matches/rodada/{run}/{verb}")
async def steer(run: ScrapeId, verb: str, actor: Operator, who: ALooker) -> Response:
    """ "Tentar de novo o que falhou", "Procurar o que falta"."""
    said = await _steered(who.house.retoma, run, verb, actor.name)
    return did(who, who.view.tell(said), round_at(run))


async def _steered(retoma: Retoma, run: int, verb: str, actor: str) -> Said:
    match verb:
        case "falhas":
            jobs = await service.scrapes.retry_failed(retoma, run=run, actor=actor)
            return say("matches tried again: {n}", n=len(jobs))
        case "olhar":
            jobs = await service.scrapes.hurry_scrape(retoma, run, actor=actor)
            return say("looked at now: {n}", n=len(jobs))
        case "faltas":
            scrape = await service.scrapes.get_scrape(retoma, run)
            missing = await service.scrapes.retry_missing(retoma, scrape.of, actor=actor)
            return say(
                "missing matches tried again: {n} of {all}; the page of the round is read again",
                n=len(missing.jobs),
                all=len(missing.missing),
            )
        case _:
            raise Refusal("not_found", say("there is nothing at this address"))
