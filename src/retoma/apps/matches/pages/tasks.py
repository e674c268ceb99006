"""One match of a round: what happened, the page that was refused beside what failed on it, and how it is repaired."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request
from starlette.responses import Response

from retoma.apps.matches import service
from retoma.apps.matches.inputs import Reason, TaskId
from retoma.apps.matches.model import ATTEMPTS, DISCOVERY, MATCH
from retoma.apps.matches.pages.presenters import (
    LOOKS,
    REPLAY,
    evidence_told,
    led,
    match_at,
    round_at,
    task_at,
    why_not_yet,
)
from retoma.apps.matches.pages.snapshots import frame, kept
from retoma.apps.matches.sites import league_name, team_name
from retoma.apps.matches.store.tasks import ScrapeTask
from retoma.web.pages.asked import Blank, Number, filled
from retoma.web.pages.job import JobScreen
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Screen, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, form_of, page_router, serve_screen
from retoma.web.sign_in import Operator, Viewer
from retoma.words import say

routes = page_router()

SHARED: Final = ("job-attempts", "job-timeline")  # of the page of its job
BeforeLine = Annotated[Number | None, Blank, Query()]


@dataclass(frozen=True, slots=True)
class TaskScreen(Screen):
    """One match of a scrape."""

    task: int
    before: int | None = None

    @property
    def concern(self) -> Concern:
        return Concern(kinds=(DISCOVERY, MATCH))

    async def draw(self) -> Sequence[Region]:
        task = await service.scrapes.get_task(self.pages.house.retoma, self.task)
        failed = task.error is not None
        given: dict[str, Any] = {
            **names_of(task),
            "task": task,
            "look": LOOKS[task.status],
            "not_yet": why_not_yet(self.view, task.not_yet),
            "attempts": min(task.attempts, ATTEMPTS),
            "most": ATTEMPTS,
            "retriable": task.retriable,
            "match": None if task.partida_id is None else match_at(task.partida_id),
            "place": task_at(task.id),
            "replay": REPLAY + query_of({"tarefa": task.id}),
            "evidence": evidence_told(self.view, task.error) if failed else None,
            "snapshot": await kept(self.pages, self.view, task.job, task.snapshot),
            "frame": f"{task_at(task.id)}/pagina",
            "save": f"/api/scrape/tasks/{task.id}/snapshot",
        }
        return [
            drawn(
                f"task-{part}",
                self.pages.render(f"matches/task_{part}.html", self.view, **given),
            )
            for part in ("head", "evidence")
        ] + await self._of_job(task.job)

    async def _of_job(self, job: int | None) -> list[Region]:
        if job is None:
            return []
        drawn_ = await JobScreen(self.pages, self.view, job, self.before).draw()
        return [each for each in drawn_ if each.id in SHARED]


def names_of(task: ScrapeTask) -> dict[str, Any]:
    """What it is called, and where it belongs."""
    return {
        "names": tuple(team_name(task.league, each) for each in (task.home, task.away)),
        "league": league_name(task.league),
        "round": round_at(task.job_id),
    }


def task_screen(task: TaskId, who: ALooker, before: BeforeLine = None) -> TaskScreen:
    return TaskScreen(who.pages, who.view, task, before)


AScreen = Annotated[TaskScreen, Depends(task_screen)]


@routes.get("/matches/tarefa/{task}")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    task = await service.scrapes.get_task(who.house.retoma, screen.task)
    return await who.page(screen, "matches/task.html", task=task, **names_of(task))


serve_screen(routes, "/matches/tarefa/{task}", task_screen)


@routes.get("/matches/tarefa/{task}/pagina")
async def snapshot(task: TaskId, _: Operator, who: ALooker) -> Response:
    """The page that was refused, for the frame."""
    found = await service.scrapes.get_task(who.house.retoma, task)
    return await frame(who, found.snapshot, found.error)


@routes.post("/matches/tarefa/{task}/olhar")
async def hurry(task: TaskId, actor: Operator, who: ALooker) -> Response:
    """ "Olhar agora": what waits for a time does not wait any longer."""
    await service.scrapes.hurry_task(who.house.retoma, task, actor=actor.name)
    return did(
        who, who.view.tell(say("task {task} is looked at now", task=task)), task_at(task)
    )


@routes.post("/matches/tarefa/{task}/descartar")
async def drop(task: TaskId, actor: Operator, who: ALooker, request: Request) -> Response:
    """ "Esta partida não existe": its round expects it no longer."""
    form = await form_of(request)
    why = filled(Reason, {"why": form.one("why")}).why
    await service.repairs.drop_match(who.house.retoma, task, why, actor=actor.name)
    return led(who, task_at(task))


@routes.post("/matches/tarefa/{task}/restaurar")
async def restore(task: TaskId, actor: Operator, who: ALooker) -> Response:
    """ "É da rodada, sim": it is looked for again."""
    await service.repairs.restore_match(who.house.retoma, task, actor=actor.name)
    return led(who, task_at(task))


@routes.post("/matches/tarefa/{task}/tentar")
async def retry(task: TaskId, actor: Operator, who: ALooker) -> Response:
    """ "Tentar de novo": a new generation of three attempts."""
    await service.scrapes.retry_task(who.house.retoma, task, actor=actor.name)
    return did(who, who.view.tell(say("task {task} is tried again", task=task)), task_at(task))
