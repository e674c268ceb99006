"""The dead letters of embeddings (the document's DLQ), each with its cause and *retry*; the parked documents with *resume*."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

from fastapi import Depends, Request
from starlette.responses import Response

from retoma.apps.embeddings.model import CODES, KIND, meaning_of
from retoma.apps.embeddings.pages.looks import CONCERN, DEAD, address, read
from retoma.apps.embeddings.store.rows import verb
from retoma.db import Transaction
from retoma.engine.errors import NotFound
from retoma.engine.insights import Search
from retoma.engine.states import State
from retoma.engine.store import Verb
from retoma.web.house import AVisit
from retoma.web.many import do_where
from retoma.web.pages.asked import Blank, CodeOf, Number
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Pages, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, page_router, streamed
from retoma.web.pages.view import View
from retoma.web.sign_in import Operator, Viewer
from retoma.words import say

routes = page_router()

DOCUMENTS_OF_JOBS: Final = verb("documents_of_jobs")
ROWS: Final = 50
NOTHING_FAILED: Final = say(
    "No dead letters. A document whose text cannot be embedded appears here."
)
NO_SUCH_FAILURE: Final = say("Nothing failed by this error.")

Before = Annotated[Number | None, Blank]


@dataclass(frozen=True, slots=True)
class DeadDocument:
    """Whose job it was; the document may be gone."""

    id: int
    name: str
    collection: str
    place: str


@dataclass(frozen=True, slots=True)
class DeadScreen:
    """The newest dead letters, or older ones."""

    pages: Pages = field(compare=False, repr=False)
    view: View
    code: str | None = None
    before: int | None = None

    @property
    def key(self) -> "DeadScreen":
        return self

    @property
    def concern(self) -> Concern:
        return CONCERN

    async def draw(self) -> Sequence[Region]:
        retoma = self.pages.house.retoma
        search = letters(self.code)
        page = await retoma.search(search, before=self.before, limit=ROWS)
        causes = await retoma.dead_causes([job.id for job in page.jobs])
        documents = await self._documents([job.id for job in page.jobs])
        rows = {
            f"dead-{job.id}": self.pages.render(
                "embeddings/dead_row.html",
                self.view,
                job=job,
                message=causes[job.id].message,
                meaning=meaning_of(job.code, self.view.language),
                document=documents.get(job.id),
                page=DEAD,
            )
            for job in page.jobs
            if job.id in causes
        }
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        count = await retoma.count(search)
        head = self.pages.render("embeddings/dead_head.html", self.view, count=count)
        waiting = await self._parked_region()
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NOTHING_FAILED if self.code is None else NO_SUCH_FAILURE,
            way=None if self.code is None else (say("Clear"), DEAD),
            following=self._link(page.next) if page.next else None,
            first=self._link() if self.before else None,
        )
        return [drawn("dead-head", head), waiting, drawn("rows", table, rows), turns]

    async def _parked_region(self) -> Region:
        """The newest parked documents, and how many there are."""
        retoma = self.pages.house.retoma
        search = parked(self.code)
        page = await retoma.search(search, before=None, limit=ROWS)
        documents = await self._documents([job.id for job in page.jobs])
        html = self.pages.render(
            "embeddings/parked.html",
            self.view,
            count=await retoma.count(search),
            jobs=[
                (job, meaning_of(job.code, self.view.language), documents.get(job.id))
                for job in page.jobs
            ],
            page=DEAD,
        )
        return drawn("parked", html)

    async def _documents(self, jobs: Sequence[int]) -> dict[int, DeadDocument]:
        def look(tx: Transaction) -> dict[int, DeadDocument]:
            return {
                int(job): DeadDocument(int(id_), name, collection, address(collection))
                for job, id_, name, collection in tx.all(
                    DOCUMENTS_OF_JOBS, jobs=json.dumps([*jobs])
                )
            }

        return await read(self.pages.house, look) if jobs else {}

    def _link(self, before: int | None = None) -> str:
        return DEAD + query_of({"erro": self.code, "antes": before})


def letters(code: str | None) -> Search:
    return Search(letters=True, kind=KIND, code=code)


def parked(code: str | None) -> Search:
    return Search(state=State.PARKED, kind=KIND, code=code)


def dead_screen(who: ALooker, erro: CodeOf = None, antes: Before = None) -> DeadScreen:
    return DeadScreen(who.pages, who.view, erro, antes)


AScreen = Annotated[DeadScreen, Depends(dead_screen)]


@routes.get("/embeddings/falhas")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    return await who.page(
        screen, "embeddings/dead.html", code=screen.code, codes=CODES, page=DEAD
    )


@routes.get("/live/embeddings/falhas")
async def live(_: Viewer, who: ALooker, request: Request, screen: AScreen) -> Response:
    return await streamed(request, who, screen)


@routes.post("/embeddings/falhas/repetir")
async def replay_all(
    actor: Operator, who: ALooker, visit: AVisit, erro: CodeOf = None
) -> Response:
    """ "Repetir todas"."""
    command = await who.house.retoma.command(Verb.RETRY, actor=actor.name)
    done = await do_where(
        who.house, command, letters(erro), None, visit, Response(), dry_run=False
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
    command = await who.house.retoma.command(Verb.RESUME, actor=actor.name)
    done = await do_where(
        who.house, command, parked(erro), None, visit, Response(), dry_run=False
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
    if (await who.house.retoma.get(job)).kind != KIND:
        raise NotFound(say("there is no job {job} of embeddings", job=job))
    await who.house.retoma.resume(job, actor=actor.name)
    return did(who, who.view.tell(say("job {job} is resumed", job=job)), DEAD)


@routes.post("/embeddings/falhas/{job}/repetir")
async def replay(job: Number, actor: Operator, who: ALooker) -> Response:
    """ "Repetir": with a fresh budget, from where it stopped."""
    if (await who.house.retoma.get(job)).kind != KIND:
        raise NotFound(say("there is no job {job} of embeddings", job=job))
    await who.house.retoma.retry(job, only_dead=True, actor=actor.name)
    return did(who, who.view.tell(say("job {job} is tried again", job=job)), DEAD)
