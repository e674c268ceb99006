"""The dead letters of embeddings (the document's DLQ), each with its cause and *retry*; the parked documents with *resume*."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends
from starlette.responses import Response

from retoma.apps.embeddings import service
from retoma.apps.embeddings.model import CODES, meaning_of
from retoma.apps.embeddings.pages.presenters import CONCERN, DEAD, present_job
from retoma.engine.store import Verb
from retoma.web.house import AVisit
from retoma.web.many import do_where
from retoma.web.pages.asked import Blank, CodeOf, Number
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Screen, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, page_router, serve_screen
from retoma.web.sign_in import Operator, Viewer
from retoma.words import say

routes = page_router()

ROWS: Final = 50
NOTHING_FAILED: Final = say(
    "No dead letters. A document whose text cannot be embedded appears here."
)
NO_SUCH_FAILURE: Final = say("Nothing failed by this error.")

Before = Annotated[Number | None, Blank]


@dataclass(frozen=True, slots=True)
class DeadScreen(Screen):
    """The newest dead letters, or older ones."""

    code: str | None = None
    before: int | None = None

    @property
    def concern(self) -> Concern:
        return CONCERN

    async def draw(self) -> Sequence[Region]:
        found = await service.search_jobs(
            self.pages.house.retoma,
            service.select_dead(self.code),
            before=self.before,
            limit=ROWS,
        )
        rows = {
            f"dead-{each.job.id}": self.pages.render(
                "embeddings/dead_row.html", self.view, page=DEAD, **present_job(each, self.view)
            )
            for each in found.jobs
        }
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        head = self.pages.render("embeddings/dead_head.html", self.view, count=found.count)
        waiting = await self._parked_region()
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NOTHING_FAILED if self.code is None else NO_SUCH_FAILURE,
            way=None if self.code is None else (say("Clear"), DEAD),
            following=self._link(found.next) if found.next else None,
            first=self._link() if self.before else None,
        )
        return [drawn("dead-head", head), waiting, drawn("rows", table, rows), turns]

    async def _parked_region(self) -> Region:
        """The newest parked documents, and how many there are."""
        found = await service.search_jobs(
            self.pages.house.retoma, service.select_parked(self.code), limit=ROWS
        )
        html = self.pages.render(
            "embeddings/parked.html",
            self.view,
            count=found.count,
            jobs=[present_job(each, self.view) for each in found.jobs],
            waiting=[
                (each, meaning_of(each.code, self.view.language))
                for each in await service.list_parked(self.pages.house.retoma, self.code)
            ],
            page=DEAD,
        )
        return drawn("parked", html)

    def _link(self, before: int | None = None) -> str:
        return DEAD + query_of({"erro": self.code, "antes": before})


def dead_screen(who: ALooker, erro: CodeOf = None, antes: Before = None) -> DeadScreen:
    return DeadScreen(who.pages, who.view, erro, antes)


AScreen = Annotated[DeadScreen, Depends(dead_screen)]


@routes.get("/embeddings/falhas")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    return await who.page(
        screen, "embeddings/dead.html", code=screen.code, codes=CODES, page=DEAD
    )


serve_screen(routes, "/embeddings/falhas", dead_screen)


@routes.post("/embeddings/falhas/repetir")
async def replay_all(
    actor: Operator, who: ALooker, visit: AVisit, erro: CodeOf = None
) -> Response:
    """ "Repetir todas"."""
    command = await who.house.retoma.bulk.prepare(Verb.RETRY, actor=actor.name)
    done = await do_where(
        who.house, command, service.select_dead(erro), None, visit, Response(), dry_run=False
    )
    if done.job is not None:
        said = say("retrying {n} documents", n=done.matching)
    elif done.moved == 1:
        said = say("1 document retried")
    else:
        said = say("{n} documents retried", n=done.moved)
    return did(who, who.view.tell(said), DEAD)


@routes.post("/embeddings/falhas/continuar")
async def resume_all(
    actor: Operator, who: ALooker, visit: AVisit, erro: CodeOf = None
) -> Response:
    """ "Continuar todos"."""
    command = await who.house.retoma.bulk.prepare(Verb.RESUME, actor=actor.name)
    done = await do_where(
        who.house, command, service.select_parked(erro), None, visit, Response(), dry_run=False
    )
    if done.job is not None:
        said = say("resuming {n} documents", n=done.matching)
    elif done.moved == 1:
        said = say("1 document resumed")
    else:
        said = say("{n} documents resumed", n=done.moved)
    return did(who, who.view.tell(said), DEAD)


@routes.post("/embeddings/falhas/{job}/continuar")
async def resume(job: Number, actor: Operator, who: ALooker) -> Response:
    """ "Continuar": in the same generation, once its cause is removed."""
    await service.resume_job(who.house.retoma, job, actor=actor.name)
    return did(who, who.view.tell(say("job {job} is resumed", job=job)), DEAD)


@routes.post("/embeddings/falhas/{job}/repetir")
async def replay(job: Number, actor: Operator, who: ALooker) -> Response:
    """ "Repetir": with a fresh budget, from where it stopped."""
    await service.replay_job(who.house.retoma, job, actor=actor.name)
    return did(who, who.view.tell(say("job {job} is tried again", job=job)), DEAD)
